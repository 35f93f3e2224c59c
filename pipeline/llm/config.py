"""Which model, where, and how; and where its key comes from.

A configuration holds no secret: keys come from the environment or, when the `keyring` extra is installed, from the
system's keyring, and exist only inside the client that sends them.
"""

from __future__ import annotations

import importlib
import os
import urllib.parse
from typing import Final, Literal

from pydantic import ConfigDict, Field, SecretStr, field_validator

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.llm.redact import register_secret
from pipeline.llm.retry import RetryPolicy
from pipeline.llm.types import Parameters
from pipeline.schema import Record

__all__ = [
    "OPENAI_URL",
    "Api",
    "ModelConfig",
    "SchemaMode",
    "find_key",
    "model_config_from_environment",
]

Api = Literal["chat", "responses"]
SchemaMode = Literal["json_schema", "json_object", "instructed"]
"""`json_schema`: the endpoint enforces it; `json_object`: it enforces JSON (some also the schema, which goes with it),
and the schema is in the prompt; `instructed`: the prompt has to do."""
OPENAI_URL: Final = "https://api.openai.com/v1"
_KEYRING_SERVICE: Final = "expbench"
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
    api: Api | None = None
    """OpenAI's chat completions or its Responses API. None: chat completions, until the endpoint says that the model is
    offered through the other only."""
    schema_mode: SchemaMode | None = None
    """How structured output is asked for. None: found out by the first call."""

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


def model_config_from_environment(model: str | None = None) -> ModelConfig:
    """The model that the environment (or the caller) names; see `pipeline.llm.environment`.

    Raises:
        ExpbenchError: `USAGE` when no model is named or a setting is invalid.
    """
    from pipeline.llm.environment import read_environment

    return read_environment(model)


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
