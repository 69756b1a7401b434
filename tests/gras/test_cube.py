"""The cube of answers: complete, in order, and honest about what is missing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from vlmfair.bench.gras_data import draw_images, draw_judgements
from vlmfair.contracts import JUDGEMENTS, SAMPLES, write_table
from vlmfair.errors import ContractError
from vlmfair.papers.gras.cube import load_cube

TRAITS = ("trait-000", "trait-001", "trait-002")


@pytest.fixture(scope="module")
def images() -> pa.Table:
    return draw_images(per_cell=1, per_tone=2)


@pytest.fixture(scope="module")
def judgements(images: pa.Table) -> pa.Table:
    return draw_judgements(images, traits=3, seed=1)


def replaced(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, values)


def test_each_answer_stands_in_its_cell(images: pa.Table, judgements: pa.Table) -> None:
    cube = load_cube(judgements, images, traits=TRAITS)
    assert cube.p.shape == (90, 3, 5)
    assert cube.p.dtype == np.float64
    for row in judgements.slice(0, 40).to_pylist():
        image = cube.images["sample_id"].tolist().index(row["sample_id"])
        cell = cube.p[image, TRAITS.index(row["trait"]), row["template"] - 1]
        assert cell == row["p_yes"]
    faces = cube.dataset("fairface")
    assert (len(faces.p), len(cube.dataset("ai_face").p)) == (70, 20)
    assert set(faces.images["dataset"]) == {"fairface"}


def test_the_order_of_rows_and_the_kind_of_source_do_not_matter(
    images: pa.Table, judgements: pa.Table, tmp_path: Path
) -> None:
    order = np.random.default_rng(2).permutation(len(judgements))
    shuffled = judgements.take(order)
    write_table(tmp_path / "judgements.parquet", shuffled, JUDGEMENTS, row_group_size=100)
    write_table(tmp_path / "images.parquet", images.take(np.arange(89, -1, -1)), SAMPLES)
    one = load_cube(judgements, images)
    other = load_cube(tmp_path / "judgements.parquet", tmp_path / "images.parquet")
    np.testing.assert_array_equal(one.p, other.p)
    assert one.images.equals(other.images)
    assert one.traits == other.traits == TRAITS


def test_words_may_be_plain_strings_in_several_chunks(
    images: pa.Table, judgements: pa.Table
) -> None:
    plain = replaced(judgements, "sample_id", judgements["sample_id"].cast(pa.string()))
    plain = replaced(plain, "trait", plain["trait"].cast(pa.string()))
    chunked = pa.concat_tables([plain.slice(0, 500), plain.slice(500)])
    np.testing.assert_array_equal(load_cube(chunked, images).p, load_cube(judgements, images).p)


def test_further_columns_come_along_if_they_exist(images: pa.Table, judgements: pa.Table) -> None:
    table = judgements.append_column("p_yes_t0.5", pc.multiply(judgements["p_yes"], 0.5))
    cube = load_cube(table, images, further=("p_yes_t0.5", "p_yes_t1.5"))
    assert list(cube.further) == ["p_yes_t0.5"]
    np.testing.assert_allclose(cube.further["p_yes_t0.5"], cube.p / 2)


def test_missing_answers_are_counted_and_one_is_named(
    images: pa.Table, judgements: pa.Table
) -> None:
    with pytest.raises(
        ContractError,
        match=r"of 1350 cells .* 2 are missing \(for example '.*', 'trait-00.', T.\) and 0 are rep",
    ):
        load_cube(judgements.slice(2), images)


def test_repeated_answers_are_counted(images: pa.Table, judgements: pa.Table) -> None:
    twice = pa.concat_tables([judgements, judgements.slice(0, 3)])
    with pytest.raises(ContractError, match=r"0 are missing and 3 are repeated"):
        load_cube(twice, images)


def test_answers_about_another_image_or_trait_are_counted(
    images: pa.Table, judgements: pa.Table
) -> None:
    with pytest.raises(ContractError, match=r"15 rows are about an unknown image"):
        load_cube(judgements, images.slice(1))
    with pytest.raises(ContractError, match=r"450 rows are about an unknown image"):
        load_cube(judgements, images, traits=TRAITS[:2])


@pytest.mark.parametrize("wrong", [float("nan"), None, 1.5, -0.1])
def test_an_answer_that_is_ok_must_be_a_probability(
    images: pa.Table, judgements: pa.Table, wrong: float | None
) -> None:
    p = judgements["p_yes"].to_pylist()
    p[3] = wrong
    with pytest.raises(ContractError, match="1 answers have status ok but a p_yes outside 0 to 1"):
        load_cube(replaced(judgements, "p_yes", pa.array(p, pa.float64())), images)


def test_an_image_with_a_failed_answer_is_left_out(images: pa.Table, judgements: pa.Table) -> None:
    status = ["ok"] * len(judgements)
    status[5] = "error"
    failed = judgements["sample_id"][5].as_py()
    p = judgements["p_yes"].to_pylist()
    p[5] = None
    table = replaced(judgements, "status", pa.array(status))
    cube = load_cube(replaced(table, "p_yes", pa.array(p, pa.float64())), images)
    assert len(cube.p) == 89
    assert failed not in set(cube.images["sample_id"])
    assert cube.dropped["sample_id"].tolist() == [failed]


def test_nothing_left_to_measure_is_said(images: pa.Table, judgements: pa.Table) -> None:
    table = replaced(judgements, "status", pa.array(["error"] * len(judgements)))
    with pytest.raises(ContractError, match="each of the 90 images has a failed answer"):
        load_cube(table, images)


def test_a_missing_file_and_a_missing_column_are_said(
    images: pa.Table, judgements: pa.Table, tmp_path: Path
) -> None:
    with pytest.raises(ContractError, match="judgements table is missing"):
        load_cube(tmp_path / "none.parquet", images)
    with pytest.raises(ContractError, match="columns template are missing"):
        load_cube(judgements.drop_columns("template"), images)
    incomplete = tmp_path / "judgements.parquet"
    write_table(incomplete, judgements.drop_columns("p_yes"), JUDGEMENTS)
    with pytest.raises(ContractError, match="p_yes"):
        load_cube(incomplete, images)


def test_an_image_twice_is_said(images: pa.Table, judgements: pa.Table) -> None:
    with pytest.raises(ContractError, match="1 sample_id are there twice"):
        load_cube(judgements, pa.concat_tables([images, images.slice(0, 1)]))
