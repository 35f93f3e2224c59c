"""Which model, where, and how; and where its key comes from.

A configuration holds no secret: keys come from the environment or, when the `keyring` extra is installed, from the
system's keyring, and exist only inside the client that sends them.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import urllib.parse
from typing import Final, Literal

from pydantic import ConfigDict, Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.llm.redact import redact, register_secret
from pipeline.llm.retry import RetryPolicy
from pipeline.llm.types import Parameters
from pipeline.schema import Record

__all__ = ["OPENAI_URL", "ModelConfig", "ModelSettings", "find_key", "model_config_from_environment"]

OPENAI_URL: Final = "https://api.openai.com/v1"
_KEYRING_SERVICE: Final = "expbench"
# Not every colon names a provider: Ollama's models are called `llama3:8b`.
_PROVIDERS: Final = frozenset(
    {"openai", "anthropic", "google_genai", "mistralai", "groq", "cohere", "deepseek", "xai", "fireworks", "together"}
)
_PLACEHOLDER: Final = "no-key"
"""Local servers want no key, the client library wants a non-empty one."""


class ModelConfig(Record):
    """A model behind an endpoint."""

    model_config = ConfigDict(hide_input_in_errors=True)  # a mistaken address may hold a key

    model: str = Field(min_length=1)
    provider: str = Field(default="openai", pattern=r"^[a-z][a-z0-9_-]*$")
    """`openai` is any endpoint that speaks OpenAI's protocol; others are LangChain's provider names."""
    base_url: str | None = None
    """None: the provider's own."""
    endpoint: str | None = None
    """Name of the endpoint in cache keys. None: its URL. Name it when one server moves between addresses."""
    parameters: Parameters = Parameters()
    context_window: int | None = Field(default=None, ge=1)
    """Tokens of input and output together. None: what the price file says, else unknown."""
    timeout_s: float = Field(default=600.0, gt=0)
    """For one attempt altogether, however slowly the answer drips in."""
    retry: RetryPolicy = RetryPolicy()
    concurrency: int = Field(default=32, ge=1)
    """Connections kept open at most."""
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] | None = None
    """None: `max_completion_tokens` at OpenAI, `max_tokens` (which every local server knows) elsewhere."""

    @field_validator("base_url")
    @classmethod
    def _no_credentials(cls, value: str | None) -> str | None:
        if value is None:
            return None
        parts = urllib.parse.urlsplit(value)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError("must be an http(s) URL such as http://127.0.0.1:8000/v1")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise ValueError("must hold neither credentials nor a query: keys come from the environment or a keyring")
        return value.rstrip("/")

    @property
    def url(self) -> str:
        """Where requests go, for people."""
        return self.base_url or (OPENAI_URL if self.provider == "openai" else self.provider)

    @property
    def host(self) -> str:
        """Host name of the endpoint (the provider's name where LangChain knows the address)."""
        return urllib.parse.urlsplit(self.url).hostname or self.provider

    @property
    def identity(self) -> dict[str, str]:
        """What of the configuration, beside the parameters, decides an answer."""
        return {"provider": self.provider, "endpoint": self.endpoint or self.url, "model": self.model}

    @property
    def tokens_field(self) -> str:
        """Name of the field that bounds the answer."""
        if self.max_tokens_field is not None:
            return self.max_tokens_field
        return "max_completion_tokens" if self.host.endswith("openai.com") else "max_tokens"


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


def model_config_from_environment(model: str | None = None) -> ModelConfig:
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


def key_variable(provider: str) -> str:
    """The environment variable that holds a provider's key."""
    return f"{provider.upper().replace('-', '_')}_API_KEY"


def find_key(config: ModelConfig) -> SecretStr:
    """The key: from the environment, else from the keyring (service `expbench`, user the variable's name).

    A server of the user's own (`base_url`) may have none.

    Raises:
        ExpbenchError: `AUTHENTICATION` when there is none and the provider demands one.
    """
    variable = key_variable(config.provider)
    value = os.environ.get(variable, "").strip() or _from_keyring(variable)
    if value:
        register_secret(variable, value)
        return SecretStr(value)
    if config.base_url is not None and not config.host.endswith("openai.com"):
        return SecretStr(_PLACEHOLDER)
    raise ExpbenchError(
        FailureKind.AUTHENTICATION,
        config.url,
        f"there is no key: {variable} is not set and the keyring has none",
        consequence="The model was not asked",
        next_step=f"Set {variable}, or store it with `keyring set {_KEYRING_SERVICE} {variable}`"
        " (needs the keyring extra)",
    )


def _from_keyring(variable: str) -> str:
    try:
        keyring = importlib.import_module("keyring")
        errors = importlib.import_module("keyring.errors")
    except ImportError:
        return ""  # the extra is not installed; the environment is the only place then
    try:
        return str(keyring.get_password(_KEYRING_SERVICE, variable) or "").strip()
    except errors.KeyringError:
        return ""  # no usable back end on this machine; find_key says that the keyring has none


def key_fingerprint(key: SecretStr) -> str:
    """Eight characters that tell two keys apart without giving either away (for connection pools only)."""
    return hashlib.sha256(key.get_secret_value().encode()).hexdigest()[:8]
