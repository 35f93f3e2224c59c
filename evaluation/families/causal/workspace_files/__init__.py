"""What an agent finds in its workspace, as it is: on the standard library of the container's own Python alone."""
