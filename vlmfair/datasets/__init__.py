"""The datasets: one module each, from the files as they are distributed to samples and problems."""

from __future__ import annotations

import importlib
from collections.abc import Collection
from pathlib import Path
from types import ModuleType

from vlmfair.datasets.base import ParsedDataset
from vlmfair.errors import ConfigError

__all__ = ["DATASETS", "ParsedDataset", "canonical_path", "parse_dataset"]

DATASETS = {
    "fairface": "vlmfair.datasets.fairface",
    "ai_face": "vlmfair.datasets.ai_face",
}


def parse_dataset(
    name: str, raw_dir: str | Path, *, only: Collection[str] | None = None, threads: int = 1
) -> ParsedDataset:
    """Parse one dataset's raw folder into samples and problems.

    `only` restricts the images that are opened and hashed to these paths; labels are read and
    checked for all rows. Raises ConfigError on an unknown name and RawDataError as the parser does.
    """
    parsed: ParsedDataset = _module(name).parse(Path(raw_dir), only=only, threads=threads)
    return parsed


def canonical_path(name: str, path: str) -> str:
    """Return the path that follows the dataset's name in a `sample_id`, from any spelling of it."""
    return str(_module(name).canonical_path(path))


def _module(name: str) -> ModuleType:
    if name not in DATASETS:
        raise ConfigError(f"{name}: no such dataset. Write one of {', '.join(sorted(DATASETS))}.")
    return importlib.import_module(DATASETS[name])
