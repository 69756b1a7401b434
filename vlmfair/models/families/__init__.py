"""Model families: one module each, with what their classes and processors do differently."""

from __future__ import annotations

import importlib

from vlmfair.errors import ModelError
from vlmfair.models.families.base import Family

FAMILIES = {"llava": "vlmfair.models.families.llava"}


def load_family(name: str, model: str) -> Family:
    """Return the family `name` of the entry `model`; raises ModelError when there is no module."""
    if name not in FAMILIES:
        raise ModelError(
            f"{model}: there is no module for the model family {name!r}. Use one of the families "
            f"there are ({', '.join(sorted(FAMILIES))}) or add one to vlmfair/models/families."
        )
    family: Family = importlib.import_module(FAMILIES[name]).FAMILY
    return family
