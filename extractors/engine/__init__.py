"""The model engine of stage 2.1 (EXP-Bench 3.2): see `extractors.engine.run` for how its passes fit together."""

from extractors.engine.run import EngineResult, ModelReading, ReadingOptions, draft_with_model, engine_prompts

__all__ = ["EngineResult", "ModelReading", "ReadingOptions", "draft_with_model", "engine_prompts"]
