"""The store of drawn images: each kept by the content of what it was drawn from.

A store is a folder for one generator and its settings. An image is there once the record beside it
is: the record is written last and states the image's SHA-256, so that a job that is killed, or a
disk that fills, leaves nothing behind that counts as drawn.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vlmfair.errors import InferenceError
from vlmfair.provenance import content_id, write_bytes, write_json

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class StoredImage:
    """A drawn image: its file, its SHA-256, and the facts that its record states."""

    path: Path
    sha256: str
    facts: Mapping[str, Any]


class ImageStore:
    """The images of one generator with one set of settings.

    `identity` states the pipeline, the digest of its weights, and the settings; its digest names
    the folder. Two writers of the same image are harmless.
    """

    def __init__(self, root: str | os.PathLike[str], identity: Mapping[str, Any]) -> None:
        text = json.dumps(identity, sort_keys=True, ensure_ascii=True)
        self.digest = hashlib.sha256(text.encode()).hexdigest()[:32]
        self.folder = Path(root) / self.digest
        self._identity = dict(identity)
        self.damaged: list[str] = []

    def find(self, prompt: str, seed: int) -> StoredImage | None:
        """Return the image of a prompt and seed, None where there is none that is whole."""
        image, record = self._paths(prompt, seed)
        try:
            stated = json.loads(record.read_text(encoding="utf-8"))
            content = image.read_bytes()
            sha256, facts = str(stated["image_sha256"]), dict(stated["facts"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            self._skip(record, type(error).__name__)
            return None
        if hashlib.sha256(content).hexdigest() != sha256:
            self._skip(image, "its bytes are not those that were written")
            return None
        return StoredImage(image, sha256, facts)

    def add(self, prompt: str, seed: int, png: bytes, facts: Mapping[str, Any]) -> StoredImage:
        """Keep an image, whole or not at all; raises OSError where the disk does not take it."""
        image, record = self._paths(prompt, seed)
        if not (self.folder / "identity.json").exists():
            write_json(self.folder / "identity.json", self._identity)
        sha256 = hashlib.sha256(png).hexdigest()
        write_bytes(image, png)
        write_json(
            record, {"prompt": prompt, "seed": seed, "image_sha256": sha256, "facts": dict(facts)}
        )
        return StoredImage(image, sha256, dict(facts))

    def check_writable(self) -> None:
        """Raise InferenceError unless an image could be written, before anything is drawn."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.folder):
                pass
        except OSError as error:
            raise InferenceError(
                f"the store of drawn images {self.folder} cannot be written ({error.strerror}), "
                f"and images that are not kept would be lost. Make it writable, or name another "
                f"vl_bicle.synthesis.store."
            ) from error

    def _paths(self, prompt: str, seed: int) -> tuple[Path, Path]:
        key = content_id(prompt, str(seed))
        return self.folder / f"{key}.png", self.folder / f"{key}.json"

    def _skip(self, path: Path, reason: str) -> None:
        self.damaged.append(path.name)
        logger.warning("%s is not used, and its image is drawn again: %s", path, reason)
