"""Prompt files: YAML whose texts are held to the SHA-256 that the file states for each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from vlmfair.config import parse_yaml
from vlmfair.errors import ConfigError
from vlmfair.provenance import sha256_of_text

Read = TypeVar("Read")


def read_prompts_file(path: str | PathLike[str], read: Callable[[Any, str], Read]) -> Read:
    """Return what `read` makes of a prompts file's content and the SHA-256 of its text.

    Raises ConfigError on a missing file, and where `read` finds a key missing or of another form.
    """
    try:
        source = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise ConfigError(
            f"{path}: the prompts file is missing. Restore it from the repository."
        ) from error
    content = parse_yaml(source, path)
    try:
        return read(content, sha256_of_text(source))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ConfigError(
            f"{path}: the key {error} is missing or has another form. "
            f"Compare with the file in the repository."
        ) from error


def stated_digests(content: Any) -> dict[str, str]:
    """Return the section sha256 of a prompts file: the SHA-256 of each text by its name."""
    return {str(name): str(digest) for name, digest in content["sha256"].items()}


def check_digests(
    path: str | PathLike[str], stated: Mapping[str, str], found: Mapping[str, str]
) -> None:
    """Raise ConfigError on a text, by name, whose SHA-256 is not the one that the file states."""
    for name, digest in found.items():
        if stated.get(name) != digest:
            raise ConfigError(
                f"{path}: the text of {name} is not the one that its SHA-256 stands for. Restore "
                f"the text, or write sha256.{name}: {digest} if the change is meant."
            )
