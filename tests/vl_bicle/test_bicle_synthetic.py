"""Drawn demonstrations: the same captions in the same order, and how well images fit them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from bicle_drawn import both, drawn, pick
from bicle_samples import WORDS, Row, items, sample, samples
from PIL import Image

from vlmfair.errors import ContractError
from vlmfair.papers.vl_bicle.contexts import shared_contexts
from vlmfair.papers.vl_bicle.items import Items
from vlmfair.papers.vl_bicle.measure_synthetic import measure_images
from vlmfair.papers.vl_bicle.synthetic_items import plan_prompts, share_pool
from vlmfair.provenance import sha256_of_file
from vlmfair.synthesis.table import PROMPTS, image_seed
from vlmfair.text.counterparts import load_counterparts

SHOTS = (0, 2, 4)
COUNTERPARTS = load_counterparts()


def test_each_demonstration_is_a_prompt_with_an_explicit_gender_word() -> None:
    own = items("coco_bias")

    prompts = plan_prompts(own, seed=7, shards=3)

    assert prompts.schema.names == PROMPTS.schema.names
    # The first of a sample's captions with a gender word, as `samples` makes them.
    assert prompts["prompt"].to_pylist()[0] == "A man number 0."
    assert prompts["sample_id"].to_pylist() == [item.sample_id for item in own.pool]
    assert prompts["seed"].to_pylist()[0] == image_seed(7, own.pool[0].sample_id, "A man number 0.")
    # 19 demonstrations: 7, 7 and 5.
    assert prompts["shard"].to_pylist() == [0] * 7 + [1] * 7 + [2] * 5


def test_seeds_and_prompts_do_not_depend_on_the_number_of_shards() -> None:
    own = items("coco_bias")

    one, many = (plan_prompts(own, seed=7, shards=n) for n in (1, 100))

    assert one.drop_columns("shard").equals(many.drop_columns("shard"))
    assert max(many["shard"].to_pylist()) < 100


def test_a_sample_stays_one_image_when_its_caption_is_another_samples_too() -> None:
    rows = samples("coco_bias", pool=(2, 0))
    twin = sample(50, "coco_bias", "pool", "Male", captions=rows[0]["captions"])
    own = items("coco_bias", [*rows, twin])

    prompts = plan_prompts(own, seed=0, shards=1).to_pylist()

    same = [row for row in prompts if row["prompt"] == prompts[0]["prompt"]]
    assert len(same) == 2
    assert same[0]["seed"] != same[1]["seed"]


# Demonstrations


def captions_in_order(table: pa.Table) -> list[tuple[str, int, int, str]]:
    rows = table.to_pylist()
    return [(row["setting"], row["run"], row["turn"], row["text"]) for row in rows]


def test_sources_differ_in_images_alone() -> None:
    own = items("coco_bias")

    pool = share_pool(own, both(own))

    assert pool.dropped == ()
    assert pool.items["real"] == own
    contexts = {
        source: shared_contexts(one, "FS", 1, shots=SHOTS, seed=0, image_source=source)
        for source, one in pool.items.items()
    }
    assert captions_in_order(contexts["flux"]) == captions_in_order(contexts["real"])
    for source in ("flux", "sd35l"):
        assert contexts[source]["sample_id"].equals(contexts["real"]["sample_id"])
        shown = [image for image in contexts[source]["image"].to_pylist() if image]
        assert all(image.startswith(f"{source}/") for image in shown)
        assert set(contexts[source]["image_source"].to_pylist()) == {source}
    assert len({ids for one in contexts.values() for ids in one["context_id"].to_pylist()}) == 6


def test_what_one_generator_lacks_is_dropped_from_all_sources() -> None:
    own = items("coco_bias")
    first, second = (
        shared_contexts(own, "MS", 1, shots=SHOTS, seed=0)["sample_id"].to_pylist()[place]
        for place in (0, 2)
    )
    tables = both(own, flux={first: "refused"}, sd35l={second: "uniform"})

    pool = share_pool(own, tables)

    assert {left.sample_id for left in pool.dropped} == {first, second}
    assert {left.reason for left in pool.dropped} == {"no_synthetic_image"}
    contexts = [
        shared_contexts(one, "MS", 1, shots=SHOTS, seed=0, image_source=source)
        for source, one in pool.items.items()
    ]
    shown = [captions_in_order(table) for table in contexts]
    assert shown[0] == shown[1] == shown[2]
    used = set(contexts[0]["sample_id"].to_pylist())
    assert not used & {first, second}
    # The others stay in their order: the sequence moves up.
    before = [i for i in dict.fromkeys(_sequence(own)) if i not in (first, second)]
    assert list(dict.fromkeys(_sequence(pool.items["real"])))[:2] == before[:2]
    assert set(pool.dropped) <= set(pool.items["flux"].left_out)


def _sequence(own: Items) -> list[str]:
    table = shared_contexts(own, "MS", 1, shots=(4,), seed=0)
    return [str(name) for name in table["sample_id"].to_pylist()]


def test_tables_about_other_captions_are_refused() -> None:
    own = items("coco_bias")
    tables = both(own)

    with pytest.raises(ContractError, match="images of flux: 1 of 19 ids are missing"):
        share_pool(own, {**tables, "flux": tables["flux"].slice(1)})
    prompt = pa.array(["Another caption."] * len(own.pool))
    changed = tables["sd35l"].set_column(2, "prompt", prompt)
    with pytest.raises(ContractError, match="by sd35l was drawn from another caption"):
        share_pool(own, {**tables, "sd35l": changed})
    with pytest.raises(ContractError, match="a generator is called real"):
        share_pool(own, {"real": tables["flux"]})
    of_query = pa.array([own.queries[0].image_sha256] * len(own.pool))
    place = tables["flux"].column_names.index("image_sha256")
    stolen = tables["flux"].set_column(place, "image_sha256", of_query)
    with pytest.raises(ContractError, match="flux drew the very image of one of the queries"):
        share_pool(own, {"flux": stolen})


# The images themselves


class ByColour:
    """An encoder whose space has men (red) on one axis, women (blue) on the other."""

    def encode_images(self, images: Any) -> np.ndarray:
        colours = np.array([np.asarray(image, float)[0, 0] for image in images])
        return self._units(colours[:, [0, 2, 1]])

    def encode_texts(self, texts: Any) -> np.ndarray:
        said = [(" man" in text, " woman" in text, 0.5) for text in texts]
        return self._units(np.array(said, float))

    @staticmethod
    def _units(values: np.ndarray) -> np.ndarray:
        return (values / np.linalg.norm(values, axis=1, keepdims=True)).astype(np.float32)


RED, BLUE = (200, 0, 0), (0, 0, 200)


def paint(path: Path, colour: tuple[int, int, int], number: int) -> str:
    """Write an image of one colour but for one pixel, which tells it from others."""
    image = Image.new("RGB", (8, 8), colour)
    image.putpixel((7, 7), (number, 1, 1))
    path.parent.mkdir(exist_ok=True)
    image.save(path)
    return sha256_of_file(path)


def with_photographs(folder: Path, rows: list[Row]) -> list[Row]:
    """Samples whose images are files: men red, women blue."""
    for number, row in enumerate(rows):
        path = folder / f"{number}.png"
        row["image"] = path.as_posix()
        row["image_sha256"] = paint(path, RED if row["gender"] == "Male" else BLUE, number)
    return rows


def painted(folder: Path, own: Items, colours: Mapping[str, Any]) -> dict[str, pa.Table]:
    """Tables of images that are files, a colour for each gender by source."""
    tables = {}
    for source, (men, women) in colours.items():
        table = drawn(own, source)
        places, hashes = [], []
        for number, item in enumerate(own.pool, start=100):
            path = folder / source / f"{number}.png"
            hashes.append(paint(path, men if item.gender == "Male" else women, number))
            places.append(path.as_posix())
        for name, column in (("image", places), ("image_sha256", hashes)):
            place = table.column_names.index(name)
            table = table.set_column(place, name, pa.array(column))
        tables[source] = table
    return tables


def test_clipscore_and_gender_of_images_by_source(tmp_path: Path) -> None:
    own = items("coco_bias", with_photographs(tmp_path, samples("coco_bias", pool=(4, 2))))
    tables = painted(tmp_path, own, {"flux": (RED, RED), "sd35l": (BLUE, RED)})

    metrics = measure_images(
        share_pool(own, tables),
        tables,
        ByColour(),
        WORDS,
        COUNTERPARTS,
        reader="clip:colours",
        bootstraps=20,
    )

    right = {
        (source, group): pick(metrics, "gender_as_captioned", image_source=source, group=group)
        for source in ("real", "flux", "sd35l")
        for group in ("Male", "Female", "all")
    }
    assert {key: row["value"] for key, row in right.items()} == pytest.approx(
        {
            ("real", "Male"): 100.0,
            ("real", "Female"): 100.0,
            ("real", "all"): 100.0,
            ("flux", "Male"): 100.0,
            ("flux", "Female"): 0.0,
            ("flux", "all"): 100 * 4 / 6,
            ("sd35l", "Male"): 0.0,
            ("sd35l", "Female"): 0.0,
            ("sd35l", "all"): 0.0,
        }
    )
    assert {row["item"] for row in right.values()} == {"clip:colours"}
    assert [right["flux", group]["n"] for group in ("Male", "Female", "all")] == [4, 2, 6]
    # A caption's vector is (1, 0, .5) or (0, 1, .5): cosines of 2 / sqrt 5 and 0.
    score = {
        source: pick(metrics, "image_clipscore", image_source=source, group="all")["value"]
        for source in ("real", "flux", "sd35l")
    }
    full = 100 * 2 / np.sqrt(5)
    assert score == pytest.approx({"real": full, "flux": full * 4 / 6, "sd35l": 0.0}, abs=1e-4)


def test_counts_of_what_was_drawn(tmp_path: Path) -> None:
    own = items("coco_bias", with_photographs(tmp_path, samples("coco_bias", pool=(4, 3))))
    tables = painted(tmp_path, own, {"flux": (RED, BLUE)})
    names = [item.sample_id for item in own.pool]
    statuses = ["refused", "uniform", "not_a_number", *["ok"] * (len(names) - 3)]
    place = tables["flux"].column_names.index("status")
    tables["flux"] = tables["flux"].set_column(place, "status", pa.array(statuses))

    metrics = measure_images(
        share_pool(own, tables), tables, ByColour(), WORDS, COUNTERPARTS, reader="r", bootstraps=0
    )

    keys = {"image_source": "flux", "group": "all"}
    counts = {
        name: pick(metrics, name, **keys)["value"]
        for name in ("drawn", "refused", "failed", "truncated")
    }
    assert counts == {"drawn": 4, "refused": 1, "failed": 2, "truncated": 1}
    assert pick(metrics, "drawn", **keys)["n"] == 7
    assert pick(metrics, "dropped", image_source="")["value"] == 3
    assert pick(metrics, "image_clipscore", **keys)["n"] == 4
