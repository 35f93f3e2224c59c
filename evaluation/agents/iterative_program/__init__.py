"""The program of the `iterative` agent: runs inside the container, on the standard library alone.

Its files are shipped into the container as text (`evaluation.agents.iterative`), so nothing in here may import anything
of expbench or of a third party, and the code keeps to what Python 3.9 understands.
"""
