"""The GRAS image set: the published lists to the last image, and draws of the same balance."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from vlmfair.contracts import PROBLEMS, SAMPLES, conform
from vlmfair.datasets import ParsedDataset
from vlmfair.datasets.base import ProblemLog
from vlmfair.errors import ConfigError, RawDataError
from vlmfair.papers.gras.selection import (
    GROUPS,
    MEASURED,
    check_list_digest,
    check_share_left_out,
    read_selection_list,
    select_images,
    selection_statistics,
)

# notes on the released files: sha256 of both lists, rows, balance, source by tone
FAIRFACE_SHA256 = "79eb62fd249f0c62497c6ed8419214860205cea16b8520b16528186b81a1f8b3"
AI_FACE_SHA256 = "f964f1a89acdb6709f86d56fabaea6217f94136f06bc040370c03ff5e54d70c9"


def samples_of(dataset: str, rows: list[dict]) -> pa.Table:
    common = {"dataset": dataset, "image_sha256": "0" * 64, "width": 9, "height": 9}
    filled = [{"image": row["sample_id"], **common, **row} for row in rows]
    names = list(dict.fromkeys(name for row in filled for name in row))
    table = pa.table({name: [row.get(name) for row in filled] for name in names})
    return conform(table, SAMPLES)


def fairface_samples(per_cell: int) -> pa.Table:
    cells = [(a, r, g) for a in GROUPS["age"] for r in GROUPS["race"] for g in GROUPS["gender"]]
    rows = [
        {"sample_id": f"fairface/train/{1000 * i + k}.jpg", "age": a, "race": r, "gender": g}
        for i, (a, r, g) in enumerate(cells)
        for k in range(per_cell)
    ]
    rows.append(
        {"sample_id": "fairface/val/1.jpg", "age": "3-9", "race": "White", "gender": "Male"}
    )
    return samples_of("fairface", rows)


def ai_face_samples(per_tone: int) -> pa.Table:
    rows = [
        {
            "sample_id": f"ai_face/FFHQ/{100 * int(tone) + k:05d}.png",
            "skin_tone": tone,
            "gender": "Male",
            "age": "senior",
            "target": "real",
        }
        for tone in GROUPS["skin_tone"]
        for k in range(per_tone)
    ]
    fake = {"sample_id": "ai_face/GANs/1.png", "skin_tone": "1", "target": "fake"}
    return samples_of("ai_face", [*rows, fake])


@pytest.fixture
def lists(tmp_path: Path) -> dict[str, Path]:
    fairface, ai_face = tmp_path / "fairface.csv", tmp_path / "ai_face.csv"
    fairface.write_text(
        "file,age,gender,race,service_test\n"
        "FairFace/train/0.jpg,20-29,Female,Black,True\n"
        "FairFace/train/1000.jpg,20-29,Male,Black,True\n"
    )
    ai_face.write_text(
        "file,Skin Tone\n"
        "AIFace/FFHQ/00200.png,2\n"
        "AIFace/imdb_wiki/wiki/07/7_1950-01-02_1990.jpg,9\n"
    )
    return {"fairface": fairface, "ai_face": ai_face}


def test_published_lists_are_the_authors_files(reference_dir: Path) -> None:
    folder = reference_dir / "gras"
    check_list_digest(folder / "selected_images_fairface.csv", FAIRFACE_SHA256)
    check_list_digest(folder / "selected_images_aiface.csv", AI_FACE_SHA256)


def test_published_fairface_list_is_balanced_in_every_cell(reference_dir: Path) -> None:
    rows = read_selection_list(reference_dir / "gras/selected_images_fairface.csv", "fairface")
    assert len(rows) == 3570
    assert rows["sample_id"][0] == "fairface/train/25179.jpg"
    assert set(rows.groupby(["age", "race", "gender"]).size()) == {51}
    assert set(rows.groupby("age").size()) == {714}
    assert set(rows.groupby("race").size()) == {510}
    assert set(rows.groupby("gender").size()) == {1785}
    assert rows["sample_id"].str.startswith("fairface/val/").sum() == 456
    assert sum(json.loads(raw)["service_test"] == "True" for raw in rows["raw"]) == 1796


def test_published_ai_face_list_has_144_of_each_tone_and_uneven_sources(
    reference_dir: Path,
) -> None:
    rows = read_selection_list(reference_dir / "gras/selected_images_aiface.csv", "ai_face")
    none = pa.table({name: [] for name in SAMPLES.schema.names}, schema=SAMPLES.schema)
    log = ProblemLog("ai_face")
    for sample_id, raw in zip(rows["sample_id"], rows["raw"], strict=True):
        log.add(sample_id, "image_missing", raw=raw)
    counts = selection_statistics(none, log.table()).set_index(["attribute", "group"])["listed"]
    assert counts["all", "all"] == 1440
    assert [counts["skin_tone", str(tone)] for tone in range(1, 11)] == [144] * 10
    sources = ("FFHQ", "imdb_wiki/imdb", "imdb_wiki/wiki")
    by_source = [
        sum(counts["source x skin_tone", f"{s} / {t}"] for t in range(1, 11)) for s in sources
    ]
    assert by_source == [406, 789, 245]
    assert counts["source x skin_tone", "FFHQ / 1"] == 45
    assert counts["source x skin_tone", "FFHQ / 10"] == 14


def test_published_takes_listed_images_with_measured_labels_only(lists: dict[str, Path]) -> None:
    parsed = {"fairface": fairface_samples(2), "ai_face": ai_face_samples(1)}
    rows = select_images(parsed, method="published", lists=lists).samples.to_pylist()
    assert [row["sample_id"] for row in rows] == [
        "fairface/train/0.jpg",
        "fairface/train/1000.jpg",
        "ai_face/FFHQ/00200.png",
    ]
    assert [rows[0][name] for name in GROUPS] == ["Female", "Black", "20-29", None]
    assert [rows[2][name] for name in GROUPS] == [None, None, None, "2"]


def test_listed_image_without_sample_keeps_the_parsers_reason(lists: dict[str, Path]) -> None:
    log = ProblemLog("fairface")
    log.add("fairface/train/1000.jpg", "image_unreadable", "OSError: image file is truncated")
    log.add("fairface/train/0.jpg", "duplicate_record")
    log.add("fairface/train/0.jpg", "other_case", "found as train/0.JPG")
    rows = [row for row in fairface_samples(1).to_pylist() if "1000" not in row["sample_id"]]
    chosen = select_images(
        {"fairface": samples_of("fairface", rows)},
        method="published",
        lists=lists,
        problems={"fairface": log.table()},
    )
    assert chosen.samples["sample_id"].to_pylist() == ["fairface/train/0.jpg"]
    problems = chosen.problems.to_pylist()
    assert [(p["record"], p["reason"]) for p in problems] == [
        ("fairface/train/0.jpg", "other_case"),
        ("fairface/train/1000.jpg", "image_unreadable"),
    ]
    assert json.loads(problems[1]["raw"])["file"] == "FairFace/train/1000.jpg"


def test_listed_image_that_no_parser_knows_is_missing(lists: dict[str, Path]) -> None:
    chosen = select_images({"ai_face": ai_face_samples(1)}, method="published", lists=lists)
    assert [(p["record"], p["reason"]) for p in chosen.problems.to_pylist()] == [
        ("ai_face/imdb_wiki/wiki/07/7_1950-01-02_1990.jpg", "image_missing")
    ]


def test_label_of_the_list_wins_and_the_conflict_is_told(lists: dict[str, Path]) -> None:
    path = lists["fairface"]
    path.write_text(path.read_text().replace("20-29,Female,Black", "30-39,Female,White"))
    chosen = select_images({"fairface": fairface_samples(1)}, method="published", lists=lists)
    first = chosen.samples.to_pylist()[0]
    assert (first["age"], first["race"]) == ("30-39", "White")
    assert [(p["reason"], p["detail"]) for p in chosen.problems.to_pylist()] == [
        ("label_conflict", "race: the list says White, the dataset Black"),
        ("label_conflict", "age: the list says 30-39, the dataset 20-29"),
    ]


def test_dataset_without_a_label_does_not_conflict_with_the_list(lists: dict[str, Path]) -> None:
    unknown = samples_of("ai_face", [{"sample_id": "ai_face/FFHQ/00200.png", "target": "real"}])
    chosen = select_images({"ai_face": unknown}, method="published", lists=lists)
    assert chosen.samples["skin_tone"].to_pylist() == ["2"]
    assert "label_conflict" not in chosen.problems["reason"].to_pylist()


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("Male,Black", "Male,Martian", r":3: race 'Martian' is not a group of GRAS \(Black, East"),
        ("20-29,Male", "70+,Male", r":3: age '70\+' is not a group of GRAS"),
        ("train/1000.jpg", "train/0.jpg", r":3: fairface/train/0\.jpg is listed twice"),
        (",Male,Black,True", ",Male", r"fairface\.csv:3: the row has too few or too many fields"),
        ("gender", "sex", "column gender is missing"),
    ],
)
def test_list_that_is_not_exactly_right_stops_the_run(
    lists: dict[str, Path], before: str, after: str, message: str
) -> None:
    path = lists["fairface"]
    path.write_text(path.read_text().replace(before, after))
    with pytest.raises(RawDataError, match=message + r".*Fetch the list again"):
        read_selection_list(path, "fairface")


def test_wrong_checksum_shows_both_and_says_what_to_do(lists: dict[str, Path]) -> None:
    with pytest.raises(RawDataError, match=r"not 79eb62.* Fetch the list again .* SHA-256 into"):
        check_list_digest(lists["fairface"], FAIRFACE_SHA256)
    with pytest.raises(RawDataError, match="the selection list is missing"):
        check_list_digest(lists["fairface"].parent / "no.csv", FAIRFACE_SHA256)


def test_unknown_method_dataset_or_a_missing_list_is_a_config_error(lists: dict) -> None:
    parsed = {"fairface": fairface_samples(1)}
    with pytest.raises(ConfigError, match=r"best: no such GRAS selection\. Write one of publ"):
        select_images(parsed, method="best")
    with pytest.raises(ConfigError, match="the GRAS selection has no list for fairface"):
        select_images(parsed, method="published", lists={"ai_face": lists["ai_face"]})
    with pytest.raises(ConfigError, match="utkface: GRAS measures nothing on this dataset"):
        select_images({"utkface": fairface_samples(1)}, method="resample")


def test_resample_fills_each_cell_with_real_images_of_measured_ages() -> None:
    parsed = {"fairface": fairface_samples(5), "ai_face": ai_face_samples(4)}
    chosen = select_images(parsed, method="resample", per_cell=2, per_tone=3, seed=1)
    rows = chosen.samples.to_pylist()
    cells = Counter((r["age"], r["race"], r["gender"]) for r in rows if r["dataset"] == "fairface")
    assert (len(cells), set(cells.values())) == (70, {2})
    tones = Counter(r["skin_tone"] for r in rows if r["dataset"] == "ai_face")
    assert tones == dict.fromkeys(GROUPS["skin_tone"], 3)
    assert "ai_face/GANs/1.png" not in [row["sample_id"] for row in rows]
    assert {row["age"] for row in rows if row["dataset"] == "ai_face"} == {None}


def test_resample_depends_on_the_seed_and_not_on_row_order() -> None:
    samples = fairface_samples(5)
    order = np.random.default_rng(3).permutation(len(samples))

    def draw(table: pa.Table, seed: int) -> list[str]:
        chosen = select_images({"fairface": table}, method="resample", per_cell=2, seed=seed)
        return chosen.samples["sample_id"].to_pylist()

    assert draw(samples, 1) == draw(samples.take(order), 1)
    assert draw(samples, 1) != draw(samples, 2)


def test_cell_with_too_few_images_is_named_with_numbers() -> None:
    with pytest.raises(
        RawDataError, match=r"20-29 / Female / Black has 2 usable images, and 51 are to be drawn"
    ):
        select_images({"fairface": fairface_samples(2)}, method="resample")


def test_annotations_without_skin_tones_cannot_be_resampled() -> None:
    version_1 = samples_of("ai_face", [{"sample_id": "ai_face/FFHQ/1.png", "target": "real"}])
    with pytest.raises(RawDataError, match=r"no skin tones to draw by\. Fetch version 2"):
        select_images({"ai_face": version_1}, method="resample")


def chosen_with_faults() -> ParsedDataset:
    log = ProblemLog("fairface")
    row = '{"file": "FairFace/train/7.jpg", "age": "20-29", "gender": "Male", "race": "Black"}'
    log.add("fairface/train/7.jpg", "image_missing", raw=row)
    log.add("fairface/train/8.jpg", "image_empty", raw=row.replace("7.jpg", "8.jpg"))
    log.add("fairface/train/0.jpg", "other_case", raw=row.replace("7.jpg", "0.jpg"))
    return ParsedDataset(fairface_samples(1).slice(0, 70), log.table())


def test_statistics_count_what_is_lost_where_it_was_listed() -> None:
    chosen = chosen_with_faults()
    table = selection_statistics(chosen.samples, chosen.problems)
    rows = {(r["attribute"], r["group"]): r for r in table.to_dict("records")}

    def counts(attribute: str, group: str) -> list[int]:
        row = rows[attribute, group]
        return [row[name] for name in ("listed", "used", "missing", "unreadable")]

    assert counts("all", "all") == [72, 70, 1, 1]
    assert counts("gender", "Male") == [37, 35, 1, 1]
    assert counts("gender", "Female") == [35, 35, 0, 0]
    assert counts("race", "Black") == [12, 10, 1, 1]
    assert counts("age x gender x race", "20-29 / Male / Black") == [3, 1, 1, 1]
    assert len(table) == 1 + 2 + 7 + 5 + 70


def test_too_many_lost_images_stop_the_run() -> None:
    chosen = chosen_with_faults()
    files = {name: f"results/demo/samples/{name}/problems.parquet" for name in MEASURED}
    check_share_left_out(chosen, 0.05, files)
    with pytest.raises(
        RawDataError, match=r"fairface: 2 of 72 selected .* \(1 missing, 1 unread"
    ) as caught:
        check_share_left_out(chosen, 0.02, files)
    assert str(caught.value).endswith(
        "Complete the raw folder; results/demo/samples/fairface/problems.parquet has the reasons."
    )


def test_tables_keep_their_contracts(lists: dict[str, Path]) -> None:
    parsed = {"fairface": fairface_samples(1), "ai_face": ai_face_samples(1)}
    for method in ("published", "resample"):
        chosen = select_images(parsed, method=method, lists=lists, per_cell=1, per_tone=1)
        assert chosen.samples.schema.equals(SAMPLES.schema)
        assert chosen.problems.schema.equals(PROBLEMS.schema)
