"""Configuration files: read from YAML and checked against a JSON schema, one sentence an error."""

from __future__ import annotations

import difflib
import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from vlmfair.errors import ConfigError


def read_yaml(path: str | os.PathLike[str]) -> Any:
    """Read a YAML file; raises ConfigError when it is missing or not YAML."""
    try:
        return yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: the file is missing. Create it or name another one.") from error
    except yaml.YAMLError as error:
        where = getattr(error, "problem_mark", None)
        line = f" in line {where.line + 1}" if where else ""
        raise ConfigError(
            f"{path}: not valid YAML{line}. Correct the indentation or quotes."
        ) from (error)


def check_config(content: Any, schema_path: str | os.PathLike[str], name: str) -> None:
    """Raise ConfigError, naming file, key and remedy, when `content` does not fit a JSON schema."""
    schema = json.loads(Path(schema_path).read_text(encoding="utf-8"))
    validator = jsonschema.Draft202012Validator(schema)
    error = jsonschema.exceptions.best_match(validator.iter_errors(content))
    if error is not None:
        raise ConfigError(f"{name}: {_sentence(error)}")


def _sentence(error: jsonschema.exceptions.ValidationError) -> str:
    instance: Any = error.instance
    place = ".".join(str(part) for part in error.absolute_path) or "top level"
    properties = error.schema.get("properties", {}) if isinstance(error.schema, dict) else {}
    if error.validator == "additionalProperties" and isinstance(instance, dict):
        unknown = sorted(str(key) for key in instance if key not in properties)[0]
        close = difflib.get_close_matches(unknown, properties, n=1)
        remedy = f"Write {close[0]}." if close else f"Use one of {', '.join(sorted(properties))}."
        return f"{place}: {unknown} is not a known key. {remedy}"
    if error.validator == "required" and isinstance(error.schema, dict):
        required: list[str] = list(error.schema["required"])
        missing = next(key for key in required if key not in instance)
        meaning = properties.get(missing, {}).get("description", "a value")
        return f"{place}: {missing} is missing. Write {missing}: <{meaning}>."
    description = error.schema.get("description", "") if isinstance(error.schema, dict) else ""
    return f"{place}: {error.message}. Write {description or 'a value that fits'}."
