"""Whether anything below a folder has changed, told by its folders and label files alone.

Standard library only, because the Snakefile asks for it. Names come with a listing; to ask for the
facts of 100,000 images would take minutes on a cluster's file system.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

LABEL_FILES = (".csv", ".tsv", ".txt", ".json", ".jsonl")
# A folder with more label files than this has one per image.
MOST_LABEL_FILES = 50


def folder_state(folder: str | os.PathLike[str]) -> str:
    """Return a digest that changes with the names below a folder and with its label files.

    An image that is overwritten in place changes nothing. "" where there is no folder.
    """
    if not Path(folder).is_dir():
        return ""
    digest = hashlib.sha256()
    for place, folders, files in os.walk(folder, followlinks=True):
        folders.sort()
        labels = sorted(name for name in files if name.lower().endswith(LABEL_FILES))
        shown = labels if len(labels) <= MOST_LABEL_FILES else []
        for path in [Path(place), *(Path(place, name) for name in shown)]:
            try:
                status = path.stat()
            except OSError:
                continue
            relative = os.path.relpath(path, folder)
            size = 0 if path == Path(place) else status.st_size
            digest.update(f"{relative}\0{status.st_mtime_ns}\0{size}\n".encode(errors="replace"))
    return digest.hexdigest()[:16]
