"""Files that belong together appear together: all of them are made before the first is written."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from vlmfair.provenance import write_bytes


def write_together(contents: Mapping[str | os.PathLike[str], bytes]) -> list[Path]:
    """Write finished contents to their paths; when one cannot be written, none of them remains.

    Callers build every content first, so a failure in the making writes nothing at all.
    """
    written: list[Path] = []
    try:
        for path, content in contents.items():
            write_bytes(path, content)
            written.append(Path(path))
    except BaseException:
        for path in written:
            path.unlink(missing_ok=True)
        raise
    return written
