"""The program that runs OpenHands through its SDK: shipped into the container as text, run by the bundle's Python."""
