"""Digests of a model folder's files, remembered so that unchanged weights are read only once.

Standard library only, because the Snakefile asks for them whenever it plans inference.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from vlmfair.provenance import sha256_of_file, write_json

# What decides a model's answers: weights, configurations, tokenizer, chat template, own code.
CONTENT_SUFFIXES = frozenset(
    {".safetensors", ".json", ".jinja", ".model", ".tiktoken", ".txt", ".py"}
)
# Where the digests of one working folder are remembered.
MEMORY = Path(".snakemake/vlmfair_model_files.json")
# A folder with this file in it is an adapter that is merged into the weights.
ADAPTER_CONFIG = "adapter_config.json"
# A file may change once more within one tick of the clock that stamps it: seconds to wait.
_SETTLED = 2.0


def content_files(folder: Path) -> list[Path]:
    """Return the files of a model folder that decide its answers, those of adapters last."""
    adapters = sorted(path.parent for path in folder.glob(f"*/{ADAPTER_CONFIG}"))
    return [
        path
        for place in (folder, *adapters)
        for path in sorted(place.iterdir())
        if path.suffix in CONTENT_SUFFIXES and path.is_file()
    ]


def remembered_digests(
    folder: Path, memory: Path, files: Sequence[Path] | None = None
) -> tuple[tuple[str, str], ...]:
    """Return name and SHA-256 of each of `content_files`, or of the `files` of the folder.

    `memory` is a JSON file with the digests of earlier calls. A digest is taken from it while the
    file's size, times of modification and of status change, and inode are the same: the time
    of status change cannot be set back by a copy that keeps dates. A memory that is missing,
    damaged or not writable only costs time.
    """
    known = _read(memory)
    # In the hub's cache two names of the same content are links to one file.
    found = [
        (str(path.resolve()), path.relative_to(folder).as_posix(), _stamp(path))
        for path in (content_files(folder) if files is None else files)
    ]
    digests, fresh = [], {}
    for path, name, stamp in found:
        before = known.get(path)
        if isinstance(before, list) and before[:-1] == stamp:
            digests.append((name, str(before[-1])))
            continue
        digest = sha256_of_file(path)
        digests.append((name, digest))
        if max(stamp[1:3]) / 1e9 < time.time() - _SETTLED and _stamp(Path(path)) == stamp:
            fresh[path] = [*stamp, digest]
    if fresh:
        with suppress(OSError):
            # Files that are gone need no memory.
            there = {path: own for path, own in known.items() if Path(path).is_file()}
            write_json(memory, {**there, **fresh})
    return tuple(digests)


def _stamp(path: Path) -> list[int]:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]


def _read(memory: Path) -> dict[str, object]:
    try:
        content = json.loads(memory.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
