"""The model that the environment names: `EXPBENCH_MODEL`, `EXPBENCH_MODEL_*`, `OPENAI_BASE_URL`.

In a file of its own because pydantic-settings takes 0.07 s to import, which only commands that ask a model should pay.
"""

from __future__ import annotations

from typing import Final

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.llm.config import Api, ModelConfig, SchemaMode
from pipeline.llm.redact import redact
from pipeline.llm.types import Parameters

__all__ = ["ModelSettings", "read_environment"]

# Not every colon names a provider: Ollama's models are called `llama3:8b`.
_PROVIDERS: Final = frozenset(
    {"openai", "anthropic", "google_genai", "mistralai", "groq", "cohere", "deepseek", "xai", "fireworks", "together"}
)


class ModelSettings(BaseSettings):
    """`EXPBENCH_MODEL`, `EXPBENCH_MODEL_PROVIDER`, `EXPBENCH_MODEL_TEMPERATURE`, ... and `OPENAI_BASE_URL`."""

    model_config = SettingsConfigDict(env_prefix="EXPBENCH_MODEL_", frozen=True, hide_input_in_errors=True)

    name: str | None = Field(default=None, validation_alias="EXPBENCH_MODEL")
    provider: str = "openai"
    base_url: str | None = Field(default=None, validation_alias="OPENAI_BASE_URL")
    endpoint: str | None = None
    temperature: float | None = Field(default=None, ge=0)
    seed: int | None = None
    max_output_tokens: int = Field(default=4096, ge=1)
    context_window: int | None = Field(default=None, ge=1)
    timeout_s: float = Field(default=600.0, gt=0)
    api: Api | None = None
    schema_mode: SchemaMode | None = None


def read_environment(model: str | None = None) -> ModelConfig:
    """The model that the environment (or the caller) names. `provider:model` names a provider other than OpenAI's.

    Raises:
        ExpbenchError: `USAGE` when no model is named or a setting is invalid.
    """
    try:
        settings = ModelSettings()
        name = model or settings.name
        if not name:
            raise ExpbenchError(
                FailureKind.USAGE,
                "model",
                "no model is named",
                consequence="No model can be asked",
                next_step="Set EXPBENCH_MODEL (e.g. gpt-4.1-mini), and OPENAI_BASE_URL for a server of your own",
            )
        prefix, _, rest = name.partition(":")
        named = prefix in _PROVIDERS and bool(rest)
        provider = prefix if named else settings.provider
        return ModelConfig(
            model=rest if named else name,
            provider=provider,
            base_url=(settings.base_url or None) if provider == "openai" else None,
            endpoint=settings.endpoint,
            parameters=Parameters(
                temperature=settings.temperature, seed=settings.seed, max_output_tokens=settings.max_output_tokens
            ),
            context_window=settings.context_window,
            timeout_s=settings.timeout_s,
            api=settings.api,
            schema_mode=settings.schema_mode,
        )
    except ValidationError as error:
        found = error.errors(include_input=False, include_url=False)
        cause = redact("; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in found[:3]))
    raise ExpbenchError(
        FailureKind.USAGE,
        "model settings",
        cause,
        consequence="No model can be asked",
        next_step="Correct the EXPBENCH_MODEL_* or OPENAI_BASE_URL variable that is named",
    )
