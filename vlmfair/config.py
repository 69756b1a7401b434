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


class _OnceLoader(yaml.SafeLoader):
    """YAML's safe loader, but a key that stands twice in one mapping is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        lines: dict[Any, int] = {}
        for key_node, _ in node.value:
            # `<<` merges another mapping, whose keys may be overridden.
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key, line = self.construct_object(key_node, deep=True), key_node.start_mark.line + 1
            if isinstance(key, str | int | float):
                if key in lines:
                    raise _RepeatedKeyError(str(key), lines[key], line)
                lines[key] = line
        return super().construct_mapping(node, deep)


class _RepeatedKeyError(Exception):
    def __init__(self, key: str, first: int, second: int) -> None:
        super().__init__(f"line {second}: the key {key} stands in line {first} already")


def read_yaml(path: str | os.PathLike[str]) -> Any:
    """Read a YAML file; raises ConfigError as `parse_yaml`, and when the file is missing."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: the file is missing. Create it or name another one.") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: the file is not UTF-8 text. Save it as UTF-8.") from error
    return parse_yaml(text, path)


def parse_yaml(text: str, path: str | os.PathLike[str]) -> Any:
    """Return the content of a YAML text that was read from `path`.

    Raises ConfigError, naming the line, when it is not YAML or a key stands twice in one mapping:
    YAML's own rule, the last one wins, would hide the first.
    """
    try:
        return yaml.load(text, Loader=_OnceLoader)
    except _RepeatedKeyError as error:
        raise ConfigError(f"{path}: {error}. Remove one of the two.") from None
    except yaml.YAMLError as error:
        where = getattr(error, "problem_mark", None)
        line = f" in line {where.line + 1}" if where else ""
        raise ConfigError(
            f"{path}: not valid YAML{line}. Correct the indentation or quotes."
        ) from error


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
    return f"{place}: {_fault(error)}. Write {description or 'a value that fits'}."


def _fault(error: jsonschema.exceptions.ValidationError) -> str:
    """Return what is wrong, in plain words where the validator's own are not."""
    instance: Any = error.instance
    if instance is None:
        return "there is no value"
    if error.validator == "uniqueItems":
        repeated = next(entry for i, entry in enumerate(instance) if entry in instance[:i])
        return f"{repeated} is listed twice"
    if error.validator == "minItems":
        return f"the list has {len(instance)} of at least {error.validator_value} entries"
    if error.validator == "contains":
        wanted: Any = error.validator_value
        return f"{instance} lacks {wanted.get('const', 'an entry')}"
    return str(error.message).rstrip(".")
