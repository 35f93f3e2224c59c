"""Other people's task formats, in and out."""
