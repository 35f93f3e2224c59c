"""Prefect around the stages: flows, deployments, reviews in its user interface, and what one machine needs to run them.

The stages know nothing of this package; `expbench` runs the same functions without a server. Prefect's state is a view:
what was finished, decided and released is read from the workspace. Importing this package imports no Prefect.
"""
