"""The demo's raw downloads: FairFace, AI-Face and the GRAS selection lists, as distributed."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from vlmfair.demo.raw_ai_face import plan_ai_face, selection_of_ai_face, write_ai_face
from vlmfair.demo.raw_fairface import plan_fairface, selection_of_fairface, write_fairface
from vlmfair.demo.raw_images import DrawnImage
from vlmfair.demo.scenes import Scene
from vlmfair.errors import ConfigError
from vlmfair.papers.gras.artefacts import LIST_FILES
from vlmfair.provenance import write_text

DATASETS = ("fairface", "ai_face")
PER_CELL, PER_TONE, SPARE, SEED = 2, 8, 1, 20


def draw_raw(
    out_dir: Path,
    dataset: str,
    *,
    per_cell: int = PER_CELL,
    per_tone: int = PER_TONE,
    spare: int = SPARE,
    seed: int = SEED,
) -> None:
    """Write the raw folder of `fairface` or `ai_face`, label files last.

    `per_cell` images of each age x gender x race cell and `per_tone` of each skin tone will be on
    the selection list, `spare` more of each are in the folder only. The same arguments write the
    same bytes. Raises ConfigError on another dataset or a size below 1 (`spare`: below 0).
    """
    images = plan(dataset, per_cell=per_cell, per_tone=per_tone, spare=spare, seed=seed)
    write = write_fairface if dataset == "fairface" else write_ai_face
    write(Path(out_dir), images)


def draw_selection(
    out_dir: Path,
    *,
    per_cell: int = PER_CELL,
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
    per_cell: int = PER_CELL,
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
    per_cell: int = PER_CELL,
    per_tone: int = PER_TONE,
    spare: int = SPARE,
    seed: int = SEED,
) -> Scene:
    """Return the scene of one image, e.g. ("ai_face", "FFHQ/00001.png"); KeyError else."""
    scenes = scenes_of(dataset, per_cell=per_cell, per_tone=per_tone, spare=spare, seed=seed)
    return scenes[f"{dataset}/{relative_path}"]


@lru_cache(maxsize=8)
def plan(
    dataset: str, *, per_cell: int, per_tone: int, spare: int, seed: int
) -> tuple[DrawnImage, ...]:
    """Return every image of a raw folder with its labels, its scene and its fault."""
    if dataset not in DATASETS:
        raise ConfigError(f"{dataset}: no such demo dataset. Write one of {', '.join(DATASETS)}.")
    for name, value, least in (
        ("per_cell", per_cell, 1),
        ("per_tone", per_tone, 1),
        ("spare", spare, 0),
    ):
        if value < least:
            raise ConfigError(f"demo: {name} is {value}. Write a whole number from {least} on.")
    if dataset == "fairface":
        return tuple(plan_fairface(per_cell, spare, seed))
    return tuple(plan_ai_face(per_tone, spare, seed))
