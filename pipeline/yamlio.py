"""YAML whose types are fixed by the model that reads it, not by how a scalar happens to look.

Scalars are loaded as text (PyYAML's `BaseLoader`) and turned into numbers and booleans by the pydantic field they
belong to, so that `no`, `1.0`, `2024-01-01` or `1e5` in a text field stay what a person typed. `None` is written by
leaving the field out. YAML is for short fields that people edit; long or arbitrary text goes to JSON.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from pipeline.errors import ExpbenchError, FailureKind

# Control characters and YAML's own line breaks (NEL, LS, PS) survive in double quotes only: plain and literal style
# fold `\x85` into a blank (found by the round-trip property test).
_NEEDS_ESCAPES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\xa0\u2028\u2029\ufeff\ufffe\uffff]")

__all__ = ["dump_yaml", "load_yaml", "parse_yaml", "plain_yaml"]

ModelT = TypeVar("ModelT", bound=BaseModel)


class _Dumper(yaml.SafeDumper):
    """Block style, lists indented under their key, multi-line text as literal blocks where YAML allows."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None
    if _NEEDS_ESCAPES.search(text):
        style = '"'
    elif "\n" in text and not any(line != line.strip() for line in text.split("\n")):
        style = "|"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)


def dump_yaml(value: BaseModel) -> str:
    """YAML text of a model: fields in declaration order, `None` left out, Unicode as it is."""
    data: Any = value.model_dump(mode="json", exclude_none=True)
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)


# The two scanners of PyYAML read four things differently: a tab beside a plain scalar, a byte order mark inside of a
# text, odd tags (an exclamation mark where a token begins), and directives (found by drawing 20,000 texts). Texts with
# none of them are loaded by libyaml, where it was compiled in: 0.04 s instead of 0.28 s for 160 kB of task files.
_SCANNERS_DIFFER = re.compile(r"[\t\ufeff]|(?<![\w.)])!|^%|[|>][-+\d]*#", re.MULTILINE)
_FAST_LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


def plain_yaml(text: str) -> Any:
    """Texts, lists and mappings of a YAML document: no scalar becomes a number, a date or a boolean.

    What PyYAML's own `BaseLoader` gives, for every text; libyaml does the work where it gives the same.

    Raises:
        yaml.YAMLError: it is no YAML.
    """
    if not _SCANNERS_DIFFER.search(text):
        try:
            return yaml.load(text, Loader=_FAST_LOADER)  # noqa: S506 - builds texts, lists and mappings only
        except yaml.YAMLError:
            pass  # the other scanner has the last word on what is no YAML, and words its reasons
    return yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 - builds texts, lists and mappings only


def parse_yaml(text: str, model: type[ModelT], where: str) -> ModelT:
    """Read a model from YAML text.

    Raises:
        ExpbenchError: `RECORD_INVALID`, naming `where` and the first fields that do not fit.
    """
    try:
        return model.model_validate(plain_yaml(text))
    except (yaml.YAMLError, ValidationError) as error:
        raise ExpbenchError(
            FailureKind.RECORD_INVALID,
            where,
            f"is not a valid {model.__name__}: {_brief(error)}",
            consequence="It was not read, and nothing was changed",
            next_step="Correct the named fields, or restore the file from version control",
        ) from error


def load_yaml(path: Path, model: type[ModelT]) -> ModelT:
    """Read a model from a YAML file (see `parse_yaml`)."""
    return parse_yaml(path.read_text(encoding="utf-8"), model, str(path))


def _brief(error: yaml.YAMLError | ValidationError) -> str:
    if isinstance(error, ValidationError):
        parts = [f"{'.'.join(map(str, e['loc'])) or 'document'}: {e['msg']}" for e in error.errors()[:3]]
        rest = error.error_count() - len(parts)
        return "; ".join(parts) + (f" (and {rest} more)" if rest > 0 else "")
    return " ".join(str(error).split())
