"""One model as a plan sees it: its family, how it shares beginnings, its tokenizer and layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from vlmfair.cost.architecture import Architecture, architecture_in
from vlmfair.cost.image_tokens import ImageLoad, image_load, served_tokens
from vlmfair.cost.tokens import Tokenizer, tokenizer_in
from vlmfair.models.hub_files import hub_cache, snapshot_folder
from vlmfair.models.readiness import most_images_of, needs_legacy_environment
from vlmfair.models.registry import ModelEntry

PREFIX, IMAGES, NOTHING = "prefix", "images", "nothing"
# Attention goes both ways over image and prompt, so that only image features are shared.
_BOTH_WAYS = ("paligemma",)
# Earlier tokens see later images, so that prompts of several images share nothing.
_CROSS_ATTENTION = ("mllama",)


@dataclass(frozen=True)
class Subject:
    """A model of the sheet, its tokenizer and layers; `folder` is None where it is not there."""

    entry: ModelEntry
    tokenizer: Tokenizer
    architecture: Architecture | None
    folder: Path | None

    @property
    def name(self) -> str:
        """The model's name in the sheet."""
        return self.entry.name

    @property
    def family(self) -> str:
        """The model's family; that of served models is openai."""
        return self.entry.family

    @property
    def most_images(self) -> int | None:
        """Images that a prompt can hold, where that is limited."""
        return None if self.entry.api is not None else most_images_of(self.family)

    def sharing(self, images: int = 1) -> str:
        """Return what the engine shares between prompts of so many images."""
        served = self.entry.api is not None
        if served or needs_legacy_environment(self.family):
            return NOTHING
        if self.family in _CROSS_ATTENTION and images > 1:
            return IMAGES
        return IMAGES if self.family in _BOTH_WAYS else PREFIX

    def image(self, dataset: str, sizes: Mapping[str, tuple[int, int]]) -> ImageLoad:
        """Return what a usual image of a dataset becomes, resized as the entry says."""
        width, height = sizes[dataset]
        transform = self.entry.image_transforms.get(dataset, "none")
        if transform.startswith("resize:"):
            width, height = map(int, transform.removeprefix("resize:").split("x"))
        if self.entry.api is not None:
            return ImageLoad(served_tokens(self.entry.api.api_model, width, height), 0, 0)
        tower = self.architecture.tower if self.architecture else None
        return image_load(self.family, width, height, tower)


def make_subject(
    entry: ModelEntry, architectures: Mapping[str, Architecture], cache: Path | None = None
) -> Subject:
    """Return a model of the sheet, from its own files where they are there."""
    folder = _folder(entry, cache or hub_cache())
    own = architecture_in(folder) if folder is not None else None
    return Subject(entry, tokenizer_in(folder), own or architectures.get(entry.name), folder)


def _folder(entry: ModelEntry, cache: Path) -> Path | None:
    if entry.path is not None:
        folder = Path(entry.path)
    elif entry.repository is not None and entry.revision is not None:
        folder = snapshot_folder(entry.repository, entry.revision, cache)
    else:
        return None
    return folder if folder.is_dir() else None
