"""Folders of model files that appear whole or not at all."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_folder(output: Path) -> Iterator[Path]:
    """Give a folder to write in that takes the place of `output` when the block is done.

    After an error, `output` is as it was before.
    """
    output.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=output.parent, prefix=f".{output.name}"))
    try:
        yield temporary
        # A folder of tempfile's is its owner's alone.
        for path in (temporary, *temporary.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        if output.exists():
            shutil.rmtree(output)
        temporary.rename(output)
    finally:
        if temporary.exists():
            shutil.rmtree(temporary)
