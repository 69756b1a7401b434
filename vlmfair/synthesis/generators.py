"""The text-to-image pipelines that a config names, where their files lie and what they hold.

Light by design (no torch): the Snakefile asks for it whenever it plans drawing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vlmfair.errors import ConfigError, ModelError
from vlmfair.models.registry import ModelEntry, model_folder
from vlmfair.models.weights import remembered_digests
from vlmfair.provenance import sha256_of_file

SECTION = "config: vl_bicle.synthesis.generators"
PIPELINES = ("FluxPipeline", "StableDiffusion3Pipeline")
INDEX = "model_index.json"
_DECIDING = (
    *("pipeline", "steps", "guidance", "true_guidance", "max_tokens"),
    *("height", "width", "dtype", "batch_size"),
)
# Digests of large files that were read once, as the Snakefile remembers them.
MEMORY = Path(".snakemake/vlmfair_model_files.json")


@dataclass(frozen=True)
class Generator:
    """One pipeline with the settings that it draws with; config/config.yaml explains each key."""

    name: str
    pipeline: str
    steps: int
    guidance: float
    height: int
    width: int
    dtype: str
    path: str | None = None
    repository: str | None = None
    revision: str | None = None
    title: str | None = None
    true_guidance: float = 1.0
    max_tokens: int | None = None
    batch_size: int = 1
    offload: str = "auto"

    @property
    def entry(self) -> ModelEntry:
        """Where its files lie, as an entry of the sheet of models says it."""
        return ModelEntry(
            self.name,
            family="diffusers",
            dtype=self.dtype,
            attention="none",
            path=self.path,
            repository=self.repository,
            revision=self.revision,
            sheet=SECTION,
        )

    @property
    def source(self) -> str:
        """The folder, or the repository with its revision."""
        return self.entry.source

    def drawn_with(self) -> dict[str, Any]:
        """Return the settings that decide an image, beside its prompt, its seed and the weights."""
        return {name: getattr(self, name) for name in _DECIDING}


def make_generator(name: str, settings: Mapping[str, Any]) -> Generator:
    """Return a generator from its section of a config, which the schema has passed.

    Raises ConfigError unless it has either a path or a repository, and on a pipeline that draws
    without what is asked of it.
    """
    where = f"{SECTION}: {name}"
    if ("path" in settings) == ("repository" in settings):
        raise ConfigError(
            f"{where}: path or repository says where the pipeline is, and one of them is needed. "
            f"Write path: <folder>, or repository and revision."
        )
    if settings["pipeline"] not in PIPELINES:
        raise ConfigError(
            f"{where}: {settings['pipeline']} is no pipeline that can be used. "
            f"Write one of {', '.join(PIPELINES)}."
        )
    if settings["pipeline"] != "FluxPipeline" and "true_guidance" in settings:
        raise ConfigError(
            f"{where}: true_guidance is FluxPipeline's, whose guidance is another thing. "
            f"Write guidance only."
        )
    return Generator(name=name, **settings)


def unready_generators(generators: Mapping[str, Generator]) -> str:
    """Return one sentence on generators that cannot draw yet; "" if all can be tried.

    A folder must be there, and a repository of the hub have a revision.
    """
    faults = []
    for name, generator in generators.items():
        if generator.path is not None and not Path(generator.path, INDEX).is_file():
            faults.append(f"{name} (no {INDEX} in {generator.path})")
        elif generator.path is None and generator.entry.lacks_revision:
            faults.append(f"{name} (no revision)")
    if not faults:
        return ""
    return (
        f"{SECTION}: {len(faults)} of {len(generators)} cannot draw yet: {', '.join(faults)}. "
        f"Put the pipeline's folder there, or write revision: <40-hex commit of the repository>."
    )


def components(folder: Path, name: str) -> tuple[str, ...]:
    """Return the names of a pipeline's parts, which lie in folders of these names.

    Raises ModelError when the folder has no readable index or lacks one of the parts.
    """
    try:
        index = json.loads((folder / INDEX).read_text(encoding="utf-8"))
        listed = [part for part, kind in index.items() if isinstance(kind, list) and all(kind)]
    except (OSError, ValueError, AttributeError) as error:
        raise ModelError(
            f"{name}: {folder} has no readable {INDEX}. "
            f"Put the whole pipeline folder there, as it is on the hub."
        ) from error
    missing = [part for part in listed if not (folder / part).is_dir()]
    if missing:
        raise ModelError(
            f"{name}: {folder} lacks {', '.join(missing)}, which {INDEX} lists. "
            f"Download the pipeline again."
        )
    return tuple(sorted(listed))


def pipeline_class(folder: Path) -> str:
    """Return the class of pipeline that a folder was saved from, as its index says."""
    index = json.loads((folder / INDEX).read_text(encoding="utf-8"))
    return str(index.get("_class_name", ""))


def pipeline_digest(generator: Generator, memory: Path = MEMORY) -> str:
    """Return a digest of a pipeline's weights, configurations and tokenizers, by content.

    Files beside its parts, such as the same weights in one file, do not count. `memory` remembers
    the digests of unchanged files. Raises ModelError as `model_folder` and `components`, and when
    there are no weights in the safetensors format.
    """
    folder = model_folder(generator.entry)
    digest = hashlib.sha256(_index_digest(folder).encode())
    has_weights = False
    for part in components(folder, generator.name):
        for file, content in remembered_digests(folder / part, memory):
            has_weights |= file.endswith(".safetensors")
            digest.update(f"{part}/{file}\0{content}\0".encode())
    if not has_weights:
        raise ModelError(
            f"{generator.name}: {folder} has no weights in the safetensors format. "
            f"Download the .safetensors files of its parts; pickled weights are not loaded."
        )
    return digest.hexdigest()[:32]


def _index_digest(folder: Path) -> str:
    path = folder / INDEX
    if not path.is_file():
        raise ModelError(
            f"{folder} has no {INDEX}. Put the whole pipeline folder there, as it is on the hub."
        )
    return sha256_of_file(path)


def identity_of(generator: Generator, digest: str, semantics: int) -> dict[str, Any]:
    """Return what decides a generator's images; it names the folder of the store.

    The same files from another folder draw the same images, so that their place does not count.
    """
    return {"content": digest, "semantics": semantics, **generator.drawn_with()}
