"""Drawing captions: shards and batches change nothing, and interruptions lose next to nothing."""

from __future__ import annotations

import errno
import hashlib
import multiprocessing
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
from tiny_drawings import CAPTIONS, GREY, StandIn, asked, draw, generator, own_settings, shard
from tiny_pipelines import SAVE

from vlmfair.errors import ContractError, InferenceError
from vlmfair.synthesis.drawing import Asked, Drawer
from vlmfair.synthesis.gather import gather_images, manifest_of
from vlmfair.synthesis.generators import (
    Generator,
    pipeline_digest,
)
from vlmfair.synthesis.pipelines import load_pipeline
from vlmfair.synthesis.store import ImageStore
from vlmfair.synthesis.table import DRAWN, image_seed

# The demo's pipelines in diffusers' format.
DEMO = sorted(
    index.parent.name
    for index in (Path(__file__).parents[1] / "resources/demo").glob("*/model_index.json")
)


@pytest.fixture(scope="session", params=sorted(SAVE))
def folder(request: Any, tmp_path_factory: Any) -> Path:
    """A pipeline of each class."""
    return Path(SAVE[request.param](tmp_path_factory.mktemp(request.param)))


# Shards, batches, interruptions


@pytest.mark.parametrize("batch_size", [1, 4])
def test_images_are_identical_from_one_shard_and_from_three(
    folder: Path, tmp_path: Path, batch_size: int
) -> None:
    own = generator(folder, batch_size=batch_size)
    found = {}
    for shards in (1, 3):
        prompts = asked(shards=shards)
        tables = [
            draw(shard(prompts, n), own, tmp_path / f"store{shards}")[0] for n in range(shards)
        ]
        target = tmp_path / f"images{shards}"
        table = gather_images(prompts, tables, target, "tiny")
        places = table["image"].to_pylist()
        found[shards] = [Path(place).read_bytes() for place in places]
        hashes = table["image_sha256"].to_pylist()
        assert [hashlib.sha256(content).hexdigest() for content in found[shards]] == hashes

    assert found[1] == found[3]
    assert len(set(found[1])) == len(CAPTIONS)


@pytest.mark.parametrize("name", DEMO)
def test_the_demos_pipelines_draw_the_same_from_three_shards(name: str, tmp_path: Path) -> None:
    path = Path(__file__).parents[1] / "resources/demo" / name
    own = generator(path, height=96, width=96, max_tokens=32)
    images = []
    for shards in (1, 3):
        prompts = asked(CAPTIONS[:3], shards=shards)
        store = tmp_path / f"store{shards}"
        tables = [draw(shard(prompts, n), own, store)[0] for n in range(shards)]
        found = gather_images(prompts, tables, tmp_path / f"images{shards}", name)
        images.append(found["image_sha256"].to_pylist())

    assert images[0] == images[1]
    assert len(set(images[0])) == 3


def test_an_image_does_not_depend_on_the_captions_that_are_drawn_with_it(folder: Path) -> None:
    own = generator(folder, batch_size=3)
    drawer = Drawer(load_pipeline(own), own, "cpu")
    waiting = [Asked(caption, number) for number, caption in enumerate(CAPTIONS)]

    forward = {one: png for batch in drawer.draw(waiting) for one, png in batch}
    backward = {one: png for batch in drawer.draw(waiting[::-1]) for one, png in batch}
    alone = {one: png for one in waiting for batch in drawer.draw([one]) for one, png in batch}

    assert forward == backward == alone


def test_a_killed_job_loses_at_most_the_batch_in_work(tmp_path: Path) -> None:
    prompts = asked([f"A man number {n}." for n in range(7)])
    own = own_settings(tmp_path, batch_size=2)

    def killed_at_the_fifth(prompt: str, seed: int) -> Any:
        if "number 4" in prompt:
            os.kill(os.getpid(), signal.SIGKILL)
        return GREY * (0.5 + seed % 7 / 14)

    def job() -> None:
        draw(prompts, own, tmp_path / "store", load=lambda _: StandIn(killed_at_the_fifth))

    # A process of its own, which gets no chance to put anything in order.
    process = multiprocessing.get_context("fork").Process(target=job)
    process.start()
    process.join(30)
    assert process.exitcode == -signal.SIGKILL

    whole = StandIn()
    table, manifest = draw(prompts, own, tmp_path / "store", load=lambda _: whole)

    # Two batches of two were done; the rest is drawn, the last batch filled up.
    assert manifest["images"] == {"stored": 4, "asked": 3}
    assert whole.calls == [
        ["A man number 4.", "A man number 5."],
        ["A man number 6.", "A man number 6."],
    ]
    assert table["status"].to_pylist() == ["ok"] * 7


def test_what_is_stored_is_not_drawn_again_and_loads_nothing(tmp_path: Path) -> None:
    own, prompts = own_settings(tmp_path), asked()
    first, _ = draw(prompts, own, tmp_path / "store", load=lambda _: StandIn())

    def refuse(_: Generator) -> Any:
        raise AssertionError("the pipeline was loaded")

    second, manifest = draw(prompts, own, tmp_path / "store", load=refuse)

    assert second.equals(first)
    assert manifest["images"] == {"stored": 6, "asked": 0}


@pytest.mark.parametrize(
    "changes",
    [
        {"steps": 3},
        {"guidance": 3.5},
        {"true_guidance": 2.0},
        {"height": 64},
        {"width": 64},
        {"dtype": "bfloat16"},
        {"batch_size": 2},
        {"max_tokens": 16},
    ],
)
def test_every_setting_that_decides_an_image_has_a_store_of_its_own(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    prompts = asked()
    draw(prompts, own_settings(tmp_path), tmp_path / "store", load=lambda _: StandIn())

    changed = own_settings(tmp_path, **changes)
    _, manifest = draw(prompts, changed, tmp_path / "store", load=lambda _: StandIn())

    assert manifest["images"] == {"stored": 0, "asked": 6}


def test_other_weights_have_a_store_of_their_own_and_a_copy_of_them_has_not(
    tmp_path: Path,
) -> None:
    own, memory = own_settings(tmp_path), tmp_path / "memory.json"
    digest = pipeline_digest(own, memory)
    shutil.copytree(tmp_path / "pipeline", tmp_path / "copy")
    (tmp_path / "copy" / "everything.safetensors").write_bytes(b"the same weights in one file")
    copied = pipeline_digest(generator(tmp_path / "copy"), memory)
    (tmp_path / "pipeline" / "vae" / "weights.safetensors").write_bytes(b"1")

    assert copied == digest
    assert pipeline_digest(own, memory) != digest


@pytest.mark.parametrize("fails", ["image", "record"])
def test_nothing_counts_as_drawn_that_a_full_disk_has_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    own, prompts = own_settings(tmp_path), asked()
    real, tried = os.replace, []

    def full(source: Any, target: Any) -> None:
        wanted = str(target).endswith(".png" if fails == "image" else ".json")
        if wanted and "identity" not in str(target) and "memory" not in str(target):
            tried.append(target)
            raise OSError(errno.ENOSPC, "No space left on device", str(target))
        real(source, target)

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        draw(prompts, own, tmp_path / "store", load=lambda _: StandIn())
    monkeypatch.setattr(os, "replace", real)
    assert tried
    (inside,) = (tmp_path / "store").iterdir()
    assert not list(inside.glob(".*")), "half-written files are left"

    table, manifest = draw(prompts, own, tmp_path / "store", load=lambda _: StandIn())

    assert manifest["images"] == {"stored": 0, "asked": 6}
    assert table["status"].to_pylist() == ["ok"] * 6


@pytest.mark.parametrize("harm", [b"", b"\x89PNG cut off", None])
def test_a_damaged_image_is_drawn_again(tmp_path: Path, harm: bytes | None) -> None:
    own, prompts = own_settings(tmp_path), asked()
    first, _ = draw(prompts, own, tmp_path / "store", load=lambda _: StandIn())
    victim = Path(first["image"].to_pylist()[2])
    victim.unlink()
    if harm is not None:
        victim.write_bytes(harm)

    table, manifest = draw(prompts, own, tmp_path / "store", load=lambda _: StandIn())

    assert manifest["images"] == {"stored": 5, "asked": 1}
    assert table.equals(first)


def test_a_store_that_cannot_be_written_is_told_before_anything_is_drawn(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("a file where the folder should be")

    with pytest.raises(InferenceError, match=r"cannot be written .* vl_bicle\.synthesis\.store"):
        draw(asked(), own_settings(tmp_path), tmp_path / "store", load=lambda _: StandIn())


# All of a generator's images


def test_gathering_asserts_each_caption_once(tmp_path: Path) -> None:
    prompts = asked()
    table, _ = draw(prompts, own_settings(tmp_path), tmp_path / "store", load=lambda _: StandIn())

    with pytest.raises(ContractError, match="1 of 6 ids are missing"):
        gather_images(prompts, [table.slice(0, 5)], tmp_path / "images", "tiny")
    with pytest.raises(ContractError, match="1 are repeated"):
        gather_images(prompts, [table, table.slice(0, 1)], tmp_path / "images", "tiny")


def test_gathered_images_have_names_that_do_not_depend_on_shards(tmp_path: Path) -> None:
    prompts, own = asked(), own_settings(tmp_path)
    table, shards = draw(prompts, own, tmp_path / "store", load=lambda _: StandIn())
    halves = [table.slice(3), table.slice(0, 3)]

    gathered = gather_images(prompts, halves, tmp_path / "images", "tiny")

    assert gathered.equals(gather_images(prompts, [table], tmp_path / "images", "tiny"))
    assert gathered.schema.names == DRAWN.schema.names
    assert {Path(place).parent for place in gathered["image"].to_pylist()} == {tmp_path / "images"}
    manifest = manifest_of(gathered, [shards])
    assert manifest["counts"]["drawn"] == 6
    assert manifest["settings"]["steps"] == 2


def test_an_image_that_is_gone_or_changed_is_told(tmp_path: Path) -> None:
    prompts, own = asked(), own_settings(tmp_path)
    table, _ = draw(prompts, own, tmp_path / "store", load=lambda _: StandIn())
    Path(table["image"].to_pylist()[1]).write_bytes(b"something else")

    with pytest.raises(InferenceError, match="is no longer what was drawn"):
        gather_images(prompts, [table], tmp_path / "images", "tiny")


def test_images_are_copied_where_links_do_not_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def other_disk(*_: Any, **__: Any) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    prompts, own = asked(), own_settings(tmp_path)
    table, _ = draw(prompts, own, tmp_path / "store", load=lambda _: StandIn())
    monkeypatch.setattr(os, "link", other_disk)

    gathered = gather_images(prompts, [table], tmp_path / "images", "tiny")

    for place, sha256 in zip(gathered["image"].to_pylist(), gathered["image_sha256"].to_pylist()):
        assert hashlib.sha256(Path(place).read_bytes()).hexdigest() == sha256


# Seeds


def test_seeds_follow_from_run_sample_and_caption_alone() -> None:
    # The first eight bytes of the SHA-256 of "image\x1f1\x1fcoco/1\x1fA man.", halved.
    digest = hashlib.sha256(b"image\x1f1\x1fcoco/1\x1fA man.").digest()

    assert image_seed(1, "coco/1", "A man.") == int.from_bytes(digest[:8], "big") // 2
    seeds = {
        image_seed(run, sample, caption)
        for run in (1, 2)
        for sample in ("coco/1", "coco/2")
        for caption in ("A man.", "A woman.")
    }
    assert len(seeds) == 8
    assert max(seeds) < 2**63


def test_two_writers_of_one_image_are_harmless(tmp_path: Path) -> None:
    first, second = (ImageStore(tmp_path, {"content": "a"}) for _ in range(2))

    first.add("A man.", 1, b"png", {"batch_size": 1})
    second.add("A man.", 1, b"png", {"batch_size": 1})

    found = first.find("A man.", 1)
    assert found is not None
    assert found.path.read_bytes() == b"png"
    assert first.find("A man.", 2) is None
    assert ImageStore(tmp_path, {"content": "b"}).find("A man.", 1) is None
