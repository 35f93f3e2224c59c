"""What an endpoint can do: configured, found out by an earlier call, or not known yet.

Endpoints that call themselves OpenAI-compatible differ in how they take JSON schemas, and OpenAI offers some models
through its Responses API only. Both are found out once and kept beside the recorded exchanges.
"""

from __future__ import annotations

from typing import Final

from pipeline.llm.cache import ExchangeStore
from pipeline.llm.config import Api, ModelConfig, SchemaMode

__all__ = ["Capabilities"]

_SCHEMA_MODES: Final[tuple[SchemaMode, ...]] = ("json_schema", "json_object", "instructed")


class Capabilities:
    """Of one model behind one endpoint.

    Args:
        config: which; what it fixes is not found out.
        store: where it is remembered over processes.
    """

    def __init__(self, config: ModelConfig, store: ExchangeStore) -> None:
        self.config, self._store = config, store
        self._schema_mode: SchemaMode | None = config.schema_mode
        self._api: Api | None = config.api

    @property
    def schema_mode(self) -> SchemaMode | None:
        """How the endpoint takes JSON schemas. None: not known yet."""
        if self.config.provider != "openai":
            return "instructed"
        if self._schema_mode is None:
            known = self._store.capability(self.config, "schema")
            self._schema_mode = next((mode for mode in _SCHEMA_MODES if mode == known), None)
        return self._schema_mode

    def remember_schema_mode(self, mode: SchemaMode) -> None:
        """Remember it for this endpoint and model, in the store too."""
        if self._schema_mode != mode:
            self._schema_mode = mode
            self._store.remember_capability(self.config, "schema", mode)

    @property
    def api(self) -> Api:
        """Which of OpenAI's interfaces the next call goes to."""
        if self._api is None and self._store.capability(self.config, "api") == "responses":
            self._api = "responses"
        return self._api or "chat"

    @property
    def api_is_open(self) -> bool:
        """May the other interface be tried when this one turns the model away?"""
        return self.config.provider == "openai" and self.config.api is None and self.api == "chat"

    def remember_responses_api(self) -> None:
        """The model is offered there."""
        self._api = "responses"
        self._store.remember_capability(self.config, "api", "responses")
