"""What a task asks of an implementation: the steps that ran for it, in the words of the code, with their lines."""

from pipeline.requirements.from_run import requirements_of_run

__all__ = ["requirements_of_run"]
