"""The model engine of stage 2.1 (EXP-Bench 3.2): see `extractors.engine.run` for how its passes fit together."""
