"""Making the repository that an agent may see, and proving that the answer is not in it."""
