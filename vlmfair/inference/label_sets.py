"""The named sets of answers to score, as every paper's prompts file lists them."""

from __future__ import annotations

import os

from vlmfair.config import read_yaml
from vlmfair.errors import ConfigError


def load_label_sets(path: str | os.PathLike[str]) -> dict[str, tuple[str, ...]]:
    """Return the surface forms of each set in `label_sets`, meaning by meaning, in file order.

    Raises ConfigError when the file has none.
    """
    content = read_yaml(path)
    sets = content.get("label_sets") if isinstance(content, dict) else None
    if not isinstance(sets, dict):
        raise ConfigError(f"{path}: label_sets is missing. List the answers to score there.")
    return {
        name: tuple(form for forms in meanings.values() for form in forms)
        for name, meanings in sets.items()
    }
