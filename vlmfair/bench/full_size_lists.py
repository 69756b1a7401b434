"""Shorter selection lists, to try the full-size run before it is paid for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from vlmfair.errors import ConfigError
from vlmfair.papers.gras.selection import CELL, read_selection_list


def shorten_lists(lists: Mapping[str, Path], images: int) -> dict[str, str]:
    """Return the texts of the lists with `images` rows in all, shared out in proportion.

    The rows that stay are evenly spaced over the cells that the lists balance, in the order of
    the list. Raises ConfigError when there are fewer rows than that, or fewer images than lists.
    """
    listed = {dataset: read_selection_list(path, dataset) for dataset, path in lists.items()}
    total = sum(map(len, listed.values()))
    if not len(lists) <= images <= total:
        raise ConfigError(
            f"full_size_images is {images}, and the lists have {total} rows. "
            f"Write a number from {len(lists)} to {total}, or leave it out for all."
        )
    shares = {dataset: len(rows) * images / total for dataset, rows in listed.items()}
    counts = {dataset: max(1, int(share)) for dataset, share in shares.items()}
    largest = max(counts, key=lambda dataset: counts[dataset])
    counts[largest] += images - sum(counts.values())
    texts = {}
    for dataset, rows in listed.items():
        in_cells = rows.reset_index(drop=True).sort_values(list(CELL[dataset]), kind="stable").index
        spaced = np.linspace(0, len(rows) - 1, counts[dataset]).round().astype(int)
        header, *lines = _lines(lists[dataset])
        kept = [lines[place] for place in sorted(in_cells[spaced])]
        texts[dataset] = "\n".join([header, *kept]) + "\n"
    return texts


def _lines(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8-sig")
    return [line for line in text.splitlines() if line.strip()]
