"""The datasets: one module each, from the files as they are distributed to samples and problems."""

from __future__ import annotations

import importlib
from collections.abc import Collection, Mapping
from pathlib import Path
from types import ModuleType

import pyarrow as pa

from vlmfair.datasets.base import ParsedDataset
from vlmfair.datasets.funnel import funnel
from vlmfair.datasets.options import check_options
from vlmfair.errors import ConfigError

__all__ = ["DATASETS", "ParsedDataset", "canonical_path", "funnel_of", "parse_dataset"]

DATASETS = {
    "fairface": "vlmfair.datasets.fairface",
    "ai_face": "vlmfair.datasets.ai_face",
    "facet": "vlmfair.datasets.facet",
    "utkface": "vlmfair.datasets.utkface",
    "visogender": "vlmfair.datasets.visogender",
    "coco_bias": "vlmfair.datasets.coco_bias",
    "dci": "vlmfair.datasets.dci",
    "visual_cot": "vlmfair.datasets.visual_cot",
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
    checked for all rows. `options` are the dataset's own rules (`tone_rule`, `seed`). Raises
    ConfigError on an unknown name, option or rule, and RawDataError as the parser does.
    """
    module, chosen = _module(name), dict(options or {})
    check_options(name, getattr(module, "OPTIONS", {}), chosen)
    parsed: ParsedDataset = module.parse(Path(raw_dir), only=only, threads=threads, **chosen)
    return parsed


def funnel_of(name: str, parsed: ParsedDataset) -> pa.Table | None:
    """Return how many records each filter left, or None for a dataset without filters.

    Columns and errors as in `vlmfair.datasets.funnel.funnel`.
    """
    steps = getattr(_module(name), "FUNNEL", None)
    return funnel(name, steps, parsed) if steps else None


def canonical_path(name: str, path: str) -> str:
    """Return the path that follows the dataset's name in a `sample_id`, from any spelling of it."""
    return str(_module(name).canonical_path(path))


def _module(name: str) -> ModuleType:
    if name not in DATASETS:
        raise ConfigError(f"{name}: no such dataset. Write one of {', '.join(sorted(DATASETS))}.")
    return importlib.import_module(DATASETS[name])
