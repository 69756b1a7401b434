"""Sections of a document that a measurement writes, between two markers."""

from __future__ import annotations

import re
from pathlib import Path

from vlmfair.errors import ConfigError
from vlmfair.provenance import write_text


def replace_section(document: Path, name: str, text: str) -> None:
    """Put `text` between `<!-- name: begin -->` and `<!-- name: end -->`, and leave the rest.

    Raises ConfigError when the document has not exactly one such pair of markers.
    """
    content = document.read_text(encoding="utf-8") if document.is_file() else ""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    pattern = re.compile(rf"({re.escape(begin)}\n).*?({re.escape(end)})", flags=re.DOTALL)
    changed, count = pattern.subn(lambda found: found[1] + text.rstrip() + "\n" + found[2], content)
    if count != 1:
        raise ConfigError(
            f"{document}: there has to be one pair of lines {begin} and {end}, and there are "
            f"{count}. Restore the document from the repository."
        )
    write_text(document, changed)
