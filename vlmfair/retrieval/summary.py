"""What was downloaded and what has to be fetched by hand, as a text for the screen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from vlmfair.retrieval.parts import missing_by_hand
from vlmfair.retrieval.photograph_list import MISSING, count_by_status, read_list
from vlmfair.screen_tables import aligned_table, bullets

Source = tuple[str, Mapping[str, Any], Path]


def summarise(
    reports: Iterable[Mapping[str, Any]],
    sources: Sequence[Source],
    photographs: Sequence[str] = (),
) -> str:
    """Return a table of files, a line of photographs, and a line for each part that is gated.

    `reports` are those of `retrieve`; `sources` name, entry and raw folder of each; `photographs`
    are lists that `fetch_photographs` wrote.
    """
    lines = [["dataset", "file", "status", "bytes", "SHA-256"]]
    for report in reports:
        for file in report["files"]:
            size = f"{file['bytes']:,}" if "bytes" in file else ""
            digest = file.get("sha256", "")[:12]
            lines.append([report["dataset"], file["name"], file["status"], size, digest])
    parts = [aligned_table(lines)] if len(lines) > 1 else []
    for path in photographs:
        counts = count_by_status(read_list(path))
        parts += bullets(
            f"Photographs, as {path} lists them",
            [
                (f"{status} {count}", MISSING.get(status, "there"))
                for status, count in counts.items()
            ],
        )
    by_hand = [
        (name, sentence)
        for name, entry, raw in sources
        for sentence in missing_by_hand(name, entry, raw)
    ]
    parts += bullets("To be fetched by hand", by_hand)
    return "\n\n".join(parts) or "There is nothing to be downloaded."
