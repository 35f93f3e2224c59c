"""How a container that has no network reaches what it may: a launcher inside, and the check of addresses outside."""
