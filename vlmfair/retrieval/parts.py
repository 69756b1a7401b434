"""Which parts of a dataset are there, and which ones nobody but the user can fetch.

Light by design, because the Snakefile asks at every parse.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vlmfair.errors import RetrievalError

# Why a part has to be fetched by hand, for the sentence about it.
GATES = {
    "request": "it is given out on request only",
    "licence": "a licence has to be accepted first",
    "browser": "the link needs a browser",
}


def are_there(raw: Path, paths: Sequence[str | Sequence[str]]) -> bool:
    """Return whether all paths lie below the raw folder; a list in them says: one of these."""
    return all(
        any((raw / way).exists() for way in ([path] if isinstance(path, str) else path))
        for path in paths
    )


def missing_files(entry: Mapping[str, Any], raw: Path) -> list[str]:
    """Return the names of the files of an entry that can be downloaded and are not there."""
    return [file["name"] for file in entry.get("files", []) if not are_there(raw, file["gives"])]


def missing_by_hand(name: str, entry: Mapping[str, Any], raw: Path) -> list[str]:
    """Return a sentence for each part that is gated and not there: what it is and what to do.

    `entry` is that of the dataset in config/datasets.yaml.
    """
    return [
        f"{raw}: {name} lacks {part['what']}, which cannot be downloaded here: "
        f"{GATES[part['gate']]}. {part['get'].strip()}"
        for part in entry.get("by_hand", [])
        if not are_there(raw, part["gives"])
    ]


def require_nothing_by_hand(name: str, entry: Mapping[str, Any], raw: Path) -> None:
    """Raise RetrievalError, with its own sentence, when a part has to be fetched by hand."""
    sentences = missing_by_hand(name, entry, raw)
    if sentences:
        raise RetrievalError(" ".join(sentences))
