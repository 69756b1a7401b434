"""Which models of a run are there, at which commit, how large, and what is to be done for others.

Sizes are looked at and contents are not: those are compared when a model is fetched or loaded.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from urllib.parse import urlsplit

from vlmfair.errors import ModelError
from vlmfair.models.components import Component
from vlmfair.models.hub_files import has_weights, hub_cache, snapshot_folder
from vlmfair.models.lock import LockedModel
from vlmfair.models.readiness import known_families, needs_legacy_environment
from vlmfair.models.registry import ModelEntry
from vlmfair.models.weights import content_files
from vlmfair.screen_tables import aligned_table, bullets

LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
YES, NO, SERVED = "yes", "no", "served"
FETCH = "Run snakemake --cores all fetch_models with the config of this run."


@dataclass(frozen=True)
class ModelRow:
    """One model that is asked for; all text but for what is to be done is short.

    `downloaded` is yes, no or served; `size` has its unit, and is that of the weights as the sheet
    states it where nothing is there yet; `next_step` is empty where all is well.
    """

    model: str
    kind: str
    downloaded: str
    revision: str
    size: str
    access: str
    next_step: str = ""


def check_model(
    entry: ModelEntry, *, cache: Path | None = None, environ: Mapping[str, str] = os.environ
) -> ModelRow:
    """Return what is there of a model of the sheet; `cache` is the hub's own if left out."""
    if entry.api is not None:
        return _served(entry, environ)
    if entry.path is not None:
        folder = Path(entry.path)
        step = entry.get or f"Put the model's files into {entry.path}."
        return _row(entry, folder if folder.is_dir() else None, step)
    if entry.family not in known_families():
        step = f"There is no module for the family {entry.family}: leave the model out."
        return _row(entry, None, step)
    if needs_legacy_environment(entry.family) and not entry.trust_remote_code:
        page = f"https://huggingface.co/{entry.repository}/tree/main"
        step = (
            f"It brings its own code: read it at {page}, and if you trust it write revision and "
            f"trust_remote_code: true in {entry.sheet}. Then run snakemake fetch_models."
        )
        return _row(entry, None, step)
    if entry.locked is not None and entry.locked.revision != entry.revision:
        step = f"Another revision is locked, {entry.locked.revision}: write that, or remove "
        return _row(entry, None, step + f"{entry.name} from the lock and fetch it again.")
    return _row(entry, *_downloaded(entry, cache))


def check_component(component: Component, locked: LockedModel | None) -> ModelRow:
    """Return what is there of an encoder or pipeline in its own folder."""
    folder = Path(component.folder)
    there = folder.is_dir() and any(folder.iterdir())
    lacking = _lacking(folder, locked)
    step = _with_access(component, f"{lacking} {FETCH}" if lacking and there else FETCH)
    revision = component.revision or (locked.revision if locked else "")
    return ModelRow(
        component.name,
        component.kind,
        YES if there and not lacking else NO,
        _revision(revision, locked),
        _size(folder) if there else _announced(component),
        _access(component.access, locked),
        "" if there and not lacking else step,
    )


def _served(entry: ModelEntry, environ: Mapping[str, str]) -> ModelRow:
    assert entry.api is not None
    key = entry.api.api_key_env
    missing = key is not None and not environ.get(key)
    access = f"key in {key}" if key else "no key"
    step = f"Set the environment variable {key} to your key for {entry.api.base_url}."
    revision = _revision(entry.revision or "", None)
    if not missing:
        step = _silent(entry.api.base_url, entry.repository or entry.api.api_model, entry.sheet)
    return ModelRow(entry.name, entry.kind, SERVED, revision, "", access, step)


def _silent(base_url: str, served: str, sheet: str) -> str:
    """Say what to do where nothing listens at an address of this machine; "" elsewhere.

    Servers of others are not asked: that could cost money.
    """
    parts = urlsplit(base_url)
    host = parts.hostname or ""
    if host not in LOCAL_HOSTS:
        return ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return (
            f"Nothing answers at {base_url}: start a server there, for example vllm serve "
            f"{served}, or write another base_url in {sheet}."
        )
    return ""


def _downloaded(entry: ModelEntry, cache: Path | None) -> tuple[Path | None, str]:
    """Return a commit's folder, None where it is not complete, and what is to be done then."""
    if entry.revision is None:
        return None, _with_access(entry, FETCH)
    folder = snapshot_folder(str(entry.repository), entry.revision, cache or hub_cache())
    lacking = _lacking(folder, entry.locked)
    complete = not lacking if entry.locked is not None else has_weights(folder)
    step = f"{lacking} {FETCH}" if lacking and folder.is_dir() else FETCH
    return (folder if complete else None), _with_access(entry, step)


def _lacking(folder: Path, locked: LockedModel | None) -> str:
    """Say how many locked files are missing or have another size; "" where none does."""
    if locked is None:
        return ""
    wrong = [
        name
        for name, known in locked.files.items()
        if not (folder / name).is_file() or (folder / name).stat().st_size != known.size
    ]
    return f"{len(wrong)} of {len(locked.files)} files are missing or differ." if wrong else ""


def _row(entry: ModelEntry, folder: Path | None, step: str) -> ModelRow:
    return ModelRow(
        entry.name,
        entry.kind,
        NO if folder is None else YES,
        "in a folder" if entry.path else _revision(entry.revision or "", entry.locked),
        _announced(entry) if folder is None else _size(folder),
        _access(entry.access, entry.locked),
        step if folder is None else "",
    )


def _with_access(entry: ModelEntry | Component, step: str) -> str:
    if entry.access != "gated":
        return step
    page = f"https://huggingface.co/{entry.repository}"
    return f"Accept the licence on {page}, and run hf auth login. {step}"


def _revision(revision: str, locked: LockedModel | None) -> str:
    if not revision:
        return ""
    return f"{revision[:12]}{' (locked)' if locked is not None else ''}"


def _access(stated: str | None, locked: LockedModel | None) -> str:
    if stated:
        return stated
    return "" if locked is None else "open" if locked.gated == "open" else "gated"


def _announced(entry: ModelEntry | Component) -> str:
    return f"about {entry.memory_gb:,.1f} GB" if entry.memory_gb else ""


def _size(folder: Path) -> str:
    files = content_files(folder)
    if not any(path.suffix == ".safetensors" for path in files):
        # Pipelines have their weights in folders of their own.
        files = [path for path in folder.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    return f"{size / 1e9:,.1f} GB" if size >= 1e8 else f"{size / 1e6:,.1f} MB"


def as_markdown(rows: Sequence[ModelRow]) -> str:
    """Return rows as a table that is also aligned on a screen, and the next steps below it.

    Models with the same next step stand together.
    """
    names = [field.name for field in fields(ModelRow)][:-1]
    parts = [aligned_table([names, *(astuple(row)[:-1] for row in rows)])]
    by_step: dict[str, list[str]] = {}
    for row in rows:
        if row.next_step:
            by_step.setdefault(row.next_step, []).append(row.model)
    steps = [(", ".join(models), step) for step, models in by_step.items()]
    return "\n\n".join([*parts, *bullets("Next steps", steps)]) + "\n"


def require_models(rows: Iterable[ModelRow]) -> None:
    """Raise ModelError when a model that is asked for is not there, or its key is not."""
    missing = [row.model for row in rows if row.next_step]
    if missing:
        raise ModelError(
            f"the models are not complete; missing: {', '.join(missing)}. Do what the list of "
            f"models says under Next steps, and run snakemake check again."
        )
