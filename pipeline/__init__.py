"""The ground floor: what a task is, where things are kept, how code is run, and the stages between paper and task.

Nothing here knows Prefect or the command line; `flows` wraps these functions.
"""
