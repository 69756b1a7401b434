"""The demo's raw downloads, as distributed: eight datasets and the GRAS selection lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

from vlmfair.demo.raw_ai_face import plan_ai_face, selection_of_ai_face, write_ai_face
from vlmfair.demo.raw_coco_bias import plan_coco_bias, write_coco_bias
from vlmfair.demo.raw_dci import plan_dci, write_dci
from vlmfair.demo.raw_facet import plan_facet, write_facet
from vlmfair.demo.raw_fairface import plan_fairface, selection_of_fairface, write_fairface
from vlmfair.demo.raw_images import DrawnImage
from vlmfair.demo.raw_utkface import plan_utkface, write_utkface
from vlmfair.demo.raw_visogender import plan_visogender, write_visogender
from vlmfair.demo.raw_visual_cot import plan_visual_cot, write_visual_cot
from vlmfair.demo.scenes import Scene
from vlmfair.errors import ConfigError
from vlmfair.papers.gras.artefacts import LIST_FILES
from vlmfair.provenance import write_text

WRITERS: dict[str, Callable[[Path, Sequence[DrawnImage]], None]] = {
    "fairface": write_fairface,
    "ai_face": write_ai_face,
    "facet": write_facet,
    "utkface": write_utkface,
    "visogender": write_visogender,
    "coco_bias": write_coco_bias,
    "dci": write_dci,
    "visual_cot": write_visual_cot,
}
DATASETS = tuple(WRITERS)
PLANNERS: dict[str, Callable[[int, int], list[DrawnImage]]] = {
    "facet": plan_facet,
    "utkface": plan_utkface,
    "visogender": plan_visogender,
    "coco_bias": plan_coco_bias,
    "dci": plan_dci,
    "visual_cot": plan_visual_cot,
}
# Images per cell where nothing else is said: age x gender x race for FairFace, race x gender for
# UTKFace, occupation x gender for the others, of which three have more men, as the datasets have.
# AI-Face has a number per skin tone instead.
PER_CELL = {
    "fairface": 2,
    "ai_face": 2,
    "facet": 6,
    "utkface": 15,
    "visogender": 3,
    "coco_bias": 4,
    "dci": 3,
    "visual_cot": 3,
}
PER_TONE, SPARE, SEED = 8, 1, 20


def draw_raw(
    out_dir: Path,
    dataset: str,
    *,
    per_cell: int | None = None,
    per_tone: int = PER_TONE,
    spare: int = SPARE,
    seed: int = SEED,
) -> None:
    """Write the raw folder of one of `DATASETS`, label files last.

    `per_cell` images of each cell and, of AI-Face, `per_tone` of each skin tone are drawn; of
    FairFace and AI-Face these will be on the selection list, and `spare` more of each are in the
    folder only. The same arguments write the same bytes. Raises ConfigError on another dataset or
    a size below 1 (`spare`: below 0).
    """
    images = plan(dataset, per_cell=per_cell, per_tone=per_tone, spare=spare, seed=seed)
    WRITERS[dataset](Path(out_dir), images)


def draw_selection(
    out_dir: Path,
    *,
    per_cell: int | None = None,
    per_tone: int = PER_TONE,
    spare: int = SPARE,
    seed: int = SEED,
) -> None:
    """Write the two selection lists that go with raw folders of the same arguments."""
    for dataset, name in LIST_FILES.items():
        images = plan(dataset, per_cell=per_cell, per_tone=per_tone, spare=spare, seed=seed)
        select = selection_of_fairface if dataset == "fairface" else selection_of_ai_face
        write_text(Path(out_dir) / name, select(images))


def scenes_of(
    dataset: str,
    *,
    per_cell: int | None = None,
    per_tone: int = PER_TONE,
    spare: int = SPARE,
    seed: int = SEED,
) -> dict[str, Scene]:
    """Return the scene behind each sample id that a raw folder of the same arguments has."""
    images = plan(dataset, per_cell=per_cell, per_tone=per_tone, spare=spare, seed=seed)
    return {f"{dataset}/{image.path}": image.scene for image in images}


def scene_of(
    dataset: str,
    relative_path: str,
    *,
    per_cell: int | None = None,
    per_tone: int = PER_TONE,
    spare: int = SPARE,
    seed: int = SEED,
) -> Scene:
    """Return the scene of one image, e.g. ("ai_face", "FFHQ/00001.png"); KeyError else."""
    scenes = scenes_of(dataset, per_cell=per_cell, per_tone=per_tone, spare=spare, seed=seed)
    return scenes[f"{dataset}/{relative_path}"]


@lru_cache(maxsize=8)
def plan(
    dataset: str, *, per_cell: int | None, per_tone: int, spare: int, seed: int
) -> tuple[DrawnImage, ...]:
    """Return every image of a raw folder with its labels, its scene and its fault."""
    if dataset not in DATASETS:
        raise ConfigError(f"{dataset}: no such demo dataset. Write one of {', '.join(DATASETS)}.")
    if per_cell is None:
        per_cell = PER_CELL[dataset]
    for name, value, least in (
        ("per_cell", per_cell, 1),
        ("per_tone", per_tone, 1),
        ("spare", spare, 0),
    ):
        if value < least:
            raise ConfigError(f"demo: {name} is {value}. Write a whole number from {least} on.")
    if dataset == "fairface":
        return tuple(plan_fairface(per_cell, spare, seed))
    if dataset == "ai_face":
        return tuple(plan_ai_face(per_tone, spare, seed))
    return tuple(PLANNERS[dataset](per_cell, seed))
