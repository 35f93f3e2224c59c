"""Tasks and trajectories in the forms of other harnesses: harbor task directories, Inspect tasks, ATIF."""
