"""Which files of a repository on the Hugging Face hub a model needs, and which are never fetched.

Standard library only, because the sheet of models is read at every parse.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

# Weights as tensors alone, and what is read as data: pickled weights can run code when loaded.
WANTED = ("*.safetensors", "*.json", "*.jinja", "*.model", "*.tiktoken", "*.txt")
CODE = "*.py"
# The same weights once more, in other formats.
UNWANTED = ("original/*", "metal/*", "onnx/*", "openvino/*", "coreml/*", "flax_model*", "tf_model*")


def wanted_files(
    trust_remote_code: bool = False, skip: tuple[str, ...] = ()
) -> tuple[list[str], list[str]]:
    """Return the patterns of files that are fetched and of those among them that are not.

    Python code is fetched only where it may run.
    """
    wanted = [*WANTED, CODE] if trust_remote_code else [*WANTED]
    return wanted, [*UNWANTED, *skip]


def is_wanted(file: str, wanted: list[str], unwanted: list[str]) -> bool:
    """Whether a file of a repository is fetched; paths that leave its folder never are."""
    path = PurePosixPath(file)
    if path.is_absolute() or ".." in path.parts or "\\" in file:
        return False
    matches = [any(fnmatchcase(file, one) for one in patterns) for patterns in (wanted, unwanted)]
    return matches[0] and not matches[1]


def hub_cache(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder in which the hub's own library keeps downloads."""
    caches = environ.get("XDG_CACHE_HOME") or "~/.cache"
    home = environ.get("HF_HOME") or f"{caches}/huggingface"
    return Path(environ.get("HF_HUB_CACHE") or f"{home}/hub").expanduser()


def snapshot_folder(repository: str, revision: str, cache: Path) -> Path:
    """Return where the hub's cache keeps a commit's files, whether they are there or not."""
    return cache / f"models--{repository.replace('/', '--')}" / "snapshots" / revision


def has_weights(folder: Path) -> bool:
    """Whether a folder has weights as safetensors, with all parts that its index names."""
    index = folder / "model.safetensors.index.json"
    if not index.is_file():
        return any(path.is_file() for path in folder.glob("*.safetensors"))
    try:
        parts = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
    except (ValueError, KeyError, AttributeError):
        return False
    return all((folder / part).is_file() for part in parts)
