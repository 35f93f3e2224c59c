"""A reader of a repository: a model that sees the whole map, asks for many things at once, and proposes under gates."""
