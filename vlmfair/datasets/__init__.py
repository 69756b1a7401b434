"""The datasets: one module each, from the files as they are distributed to samples and problems."""

from __future__ import annotations

import importlib
from collections.abc import Collection, Mapping
from pathlib import Path
from types import ModuleType

from vlmfair.datasets.base import ParsedDataset
from vlmfair.errors import ConfigError

__all__ = ["DATASETS", "ParsedDataset", "canonical_path", "parse_dataset"]

DATASETS = {
    "fairface": "vlmfair.datasets.fairface",
    "ai_face": "vlmfair.datasets.ai_face",
    "facet": "vlmfair.datasets.facet",
    "utkface": "vlmfair.datasets.utkface",
}


def parse_dataset(
    name: str,
    raw_dir: str | Path,
    *,
    only: Collection[str] | None = None,
    threads: int = 1,
    options: Mapping[str, str] | None = None,
) -> ParsedDataset:
    """Parse one dataset's raw folder into samples and problems.

    `only` restricts the images that are opened and hashed to these paths; labels are read and
    checked for all rows. `options` are the dataset's own rules (`tone_rule`, `policy`). Raises
    ConfigError on an unknown name, option or rule, and RawDataError as the parser does.
    """
    module, chosen = _module(name), dict(options or {})
    known: dict[str, tuple[str, ...]] = getattr(module, "OPTIONS", {})
    for option, value in chosen.items():
        if option not in known:
            remedy = f"Use {', '.join(known)}." if known else "Leave it out."
            raise ConfigError(f"{name}: the dataset has no option {option}. {remedy}")
        if value not in known[option]:
            raise ConfigError(
                f"{name}: {option} is {value!r}. Write one of {', '.join(known[option])}."
            )
    parsed: ParsedDataset = module.parse(Path(raw_dir), only=only, threads=threads, **chosen)
    return parsed


def canonical_path(name: str, path: str) -> str:
    """Return the path that follows the dataset's name in a `sample_id`, from any spelling of it."""
    return str(_module(name).canonical_path(path))


def _module(name: str) -> ModuleType:
    if name not in DATASETS:
        raise ConfigError(f"{name}: no such dataset. Write one of {', '.join(sorted(DATASETS))}.")
    return importlib.import_module(DATASETS[name])
