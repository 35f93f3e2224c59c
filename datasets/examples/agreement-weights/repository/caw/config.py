"""Settings from YAML files, with overrides of the form key=value from the command line."""

from pathlib import Path

import yaml

BASE = Path(__file__).resolve().parent.parent / "configs" / "base.yaml"


def load(path=None, overrides=()):
    """The base settings, updated with those of `path` and with the overrides."""
    settings = yaml.safe_load(BASE.read_text())
    if path is not None:
        settings.update(yaml.safe_load(Path(path).read_text()) or {})
    for item in overrides:
        key, _, value = item.partition("=")
        if key not in settings:
            raise SystemExit(f"unknown setting {key!r}; known: {', '.join(sorted(settings))}")
        settings[key] = yaml.safe_load(value)
    return settings
