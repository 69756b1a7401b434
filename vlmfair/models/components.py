"""Encoders and text-to-image pipelines of the sheet of models: what is downloaded, and where to.

Light by design, because the Snakefile reads them at every parse.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vlmfair.config import read_yaml
from vlmfair.errors import ConfigError


@dataclass(frozen=True)
class Component:
    """One entry of `components`; every key is explained in the project's own sheet."""

    name: str
    kind: str
    repository: str
    folder: str
    revision: str | None = None
    title: str | None = None
    skip: tuple[str, ...] = ()
    dtype: str | None = None
    memory_gb: float | None = None
    context_length: int | None = None
    env: str | None = None
    papers: tuple[str, ...] = ()
    access: str | None = None


def load_components(
    path: str | os.PathLike[str], *, name: str | None = None
) -> dict[str, Component]:
    """Return the components of a sheet that `load_registry` has checked, by name.

    Raises ConfigError when a component has the name of a model: the lock has one list of names.
    """
    content = read_yaml(path)
    raw = content.get("components", {})
    twice = sorted(set(raw) & set(content["models"]))
    if twice:
        raise ConfigError(
            f"{name or path}: {twice[0]} is the name of a model and of a component. "
            f"Rename one of them."
        )
    return {key: _component(key, settings) for key, settings in raw.items()}


def _component(name: str, settings: Mapping[str, Any]) -> Component:
    lists = {key: tuple(settings[key]) for key in ("skip", "papers") if key in settings}
    return Component(name, **{**settings, **lists})


def components_named(
    config: Mapping[str, Any], components: Mapping[str, Component]
) -> dict[str, Component]:
    """Return the components whose folder or repository a config names anywhere, by name."""
    named = set(_texts(config))
    return {
        name: component
        for name, component in components.items()
        if {component.folder, component.repository} & named
    }


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value.rstrip("/")
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, Sequence):
        for inner in value:
            yield from _texts(inner)
