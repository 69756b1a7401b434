"""The lock of models: the commit and the files that the first download of each one had.

PyYAML only, because the Snakefile reads the lock at every parse.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

import yaml

from vlmfair.config import check_config, read_yaml
from vlmfair.errors import ModelError
from vlmfair.provenance import PACKAGE_ROOT, write_text

SCHEMA = PACKAGE_ROOT.parent / "config" / "schemas" / "models.lock.schema.json"
HEAD = """\
# Written by `snakemake fetch_models`: the commit and the files of each model at its first download.
# What differs later is an error. For another commit, remove a model's entry and fetch it again.
"""
# Files that an error names; the lock has all.
SHOWN = 3


@dataclass(frozen=True)
class LockedFile:
    """Size in bytes and SHA-256 of a file."""

    size: int
    sha256: str


@dataclass(frozen=True)
class LockedModel:
    """What one download had: the commit of the repository, and each file by its path in there.

    `gated` is what the hub said of access: open, or how it is gated.
    """

    repository: str
    revision: str
    files: Mapping[str, LockedFile]
    gated: str = "open"

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files.values())


def lock_path(sheet: str | os.PathLike[str]) -> Path:
    """Return where the lock of a sheet of models lies: `models.yaml` has `models.lock.yaml`."""
    return Path(sheet).with_suffix(".lock.yaml")


def read_lock(path: str | os.PathLike[str]) -> dict[str, LockedModel]:
    """Return the locked models by their names in the sheet; none where there is no lock yet.

    Raises ConfigError when the file is damaged.
    """
    if not Path(path).exists():
        return {}
    content = read_yaml(path)
    check_config(content, SCHEMA, str(path))
    return {name: _read_model(raw) for name, raw in content["models"].items()}


def _read_model(raw: Mapping[str, Any]) -> LockedModel:
    files = {file: LockedFile(own["bytes"], own["sha256"]) for file, own in raw["files"].items()}
    return LockedModel(raw["repository"], raw["revision"], MappingProxyType(files), raw["gated"])


def add_to_lock(path: str | os.PathLike[str], name: str, model: LockedModel) -> LockedModel:
    """Lock a model unless it is locked already, and return what is locked under its name.

    The file is written whole or not at all, and two jobs that lock at the same time both keep
    what they wrote.
    """
    from filelock import FileLock

    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_name(f".{path.name}.guard")):
        locked = read_lock(path)
        if name not in locked:
            locked[name] = model
            write_text(path, HEAD + yaml.safe_dump(_written(locked), sort_keys=False, width=100))
        return locked[name]


def _written(locked: Mapping[str, LockedModel]) -> dict[str, object]:
    models = {
        name: {
            "repository": model.repository,
            "revision": model.revision,
            "gated": model.gated,
            "files": {
                file: {"bytes": known.size, "sha256": known.sha256}
                for file, known in sorted(model.files.items())
            },
        }
        for name, model in sorted(locked.items())
    }
    return {"models": models}


def check_source(
    name: str, repository: str, revision: str | None, locked: LockedModel, sheet: str
) -> None:
    """Raise ModelError when the sheet names another repository or commit than was locked."""
    for key, stated, known in (
        ("repository", repository, locked.repository),
        ("revision", revision or locked.revision, locked.revision),
    ):
        if stated != known:
            raise ModelError(
                f"{sheet}: {name}: {key} is {stated}, and {lock_path(sheet)} has locked {known}. "
                f"Write {key}: {known}, or remove {name} from the lock and run "
                f"snakemake fetch_models."
            )


def check_files(
    name: str,
    folder: Path,
    found: Mapping[str, str],
    locked: LockedModel,
    sheet: str,
    *,
    ignored: Iterable[str] = (),
) -> None:
    """Raise ModelError when files of a model's folder are not those that were locked.

    `found` has the SHA-256 of each file that decides the model's answers. Files that are not in
    the lock count as another model, but for those whose suffix is in `ignored`; locked files
    of the folder's top that are missing, too.
    """
    unknown = set(ignored)
    changed = [file for file, sha256 in found.items() if _differs(file, sha256, locked, unknown)]
    missing = [file for file in locked.files if not (folder / file).is_file()]
    if not changed and not missing:
        return
    faults = []
    if changed:
        faults.append(f"{_named(changed)} differ{'s' * (len(changed) == 1)} from it")
    if missing:
        faults.append(f"{_named(missing)} {'is' if len(missing) == 1 else 'are'} missing")
    raise ModelError(
        f"{name}: {folder} is not what {lock_path(sheet)} has locked: {' and '.join(faults)}. "
        f"Delete {_whole(folder)} and run snakemake fetch_models; to take other files than those "
        f"of the first download, remove {name} from the lock, too."
    )


def _whole(folder: Path) -> Path:
    """Return the folder that holds a model's content, of which the hub's cache only has links."""
    return folder.parents[1] if folder.parent.name == "snapshots" else folder


def _differs(file: str, sha256: str, locked: LockedModel, ignored: set[str]) -> bool:
    if file not in locked.files:
        return PurePosixPath(file).suffix not in ignored
    return locked.files[file].sha256 != sha256


def _named(files: list[str]) -> str:
    more = f" and {len(files) - SHOWN} more" if len(files) > SHOWN else ""
    return f"{', '.join(sorted(files)[:SHOWN])}{more}"
