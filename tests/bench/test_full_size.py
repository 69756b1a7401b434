"""Figures of the full-size run come from its own files, and say whether its bars are met."""

from __future__ import annotations

from collections import Counter
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest

from vlmfair.bench.document import replace_section
from vlmfair.bench.full_size import (
    JobUsage,
    bytes_below,
    collect_figures,
    figures_as_markdown,
    read_jobs,
    read_manifests,
)
from vlmfair.bench.full_size_lists import shorten_lists
from vlmfair.demo.raw_data import draw_selection
from vlmfair.errors import ConfigError, InferenceError
from vlmfair.papers.gras.artefacts import LIST_FILES

HEADER = "s\th:m:s\tmax_rss\tmax_vms\tmax_uss\tmax_pss\tio_in\tio_out\tmean_load\tcpu_time\n"
SPEED = {
    "full_forward": {"questions": 10_000.0, "cpu_seconds": 100.0, "questions_per_second": 100.0},
    "image_features": {"questions": 10_000.0, "cpu_seconds": 50.0, "questions_per_second": 200.0},
    "auto": {"questions": 10_000.0, "cpu_seconds": 20.0, "questions_per_second": 500.0},
}


def manifest(asked: int, stored: int = 0) -> dict[str, dict[str, int]]:
    return {
        "answers": {"asked": asked, "stored": stored},
        "inference_modes": {"packed": asked + stored},
    }


@pytest.fixture
def lists(tmp_path: Path) -> dict[str, Path]:
    draw_selection(tmp_path / "lists", per_cell=2, per_tone=6, seed=3)
    return {dataset: tmp_path / "lists" / name for dataset, name in LIST_FILES.items()}


def test_a_jobs_memory_is_the_larger_of_snakemakes_and_its_own(tmp_path: Path) -> None:
    """Snakemake looks only now and then: what its samples missed stands in the log."""
    benchmark = tmp_path / "benchmarks/infer/gras/tiny/0.tsv"
    benchmark.parent.mkdir(parents=True)
    # 1000 MiB are 1048.576 MB.
    benchmark.write_text(HEADER + "62.5\t0:01:02\t1000.00\t0\t0\t0\t0\t0\t99\t30.00\n")
    log = tmp_path / "logs/infer/gras/tiny/0.log"
    log.parent.mkdir(parents=True)
    log.write_text("INFO used 55.50 s of CPU time and at most 900 MB of memory\n")
    short = tmp_path / "benchmarks/tabulate_gras/table_1.tsv"
    short.parent.mkdir()
    short.write_text(HEADER + "0.4\t0:00:00\tNA\tNA\tNA\tNA\tNA\tNA\tNA\tNA\n")
    (tmp_path / "logs/tabulate_gras").mkdir()
    (tmp_path / "logs/tabulate_gras/table_1.log").write_text(
        "INFO used 0.35 s of CPU time and at most 120 MB of memory\n"
    )

    jobs = read_jobs(tmp_path / "benchmarks", tmp_path / "logs")

    assert jobs == [
        JobUsage("infer/gras/tiny/0", 62.5, 55.5, pytest.approx(1048.576)),
        JobUsage("tabulate_gras/table_1", 0.4, 0.35, 120.0),
    ]


def test_speed_is_that_of_the_jobs_that_computed_all_their_answers() -> None:
    jobs = [
        JobUsage("infer/gras/tiny/0", 70.0, 50.0, 900.0),
        JobUsage("infer/gras/tiny/1", 5.0, 4.0, 700.0),
        JobUsage("judge_gras/tiny", 9.0, 8.0, 1500.0),
    ]
    manifests = {
        "infer/gras/tiny/0": manifest(25_000),
        "infer/gras/tiny/1": manifest(5_000, stored=20_000),
    }

    figures = collect_figures(jobs, SPEED, manifests, images=100, answer_bytes=399_000_000)

    # 25,000 questions in 50 CPU seconds; the second job had most answers from the store.
    assert figures["questions_per_second"] == pytest.approx(500.0)
    assert figures["ratio"] == pytest.approx(5.0)
    assert figures["sample_ratio"] == pytest.approx(5.0)
    assert figures["questions"] == 50_000
    assert (figures["peak_job"], figures["peak_megabytes"]) == ("judge_gras/tiny", 1500.0)
    assert figures["inference_modes"] == {"packed": 50_000}
    assert figures["bars"] == {"ratio": True, "peak_megabytes": True, "answer_megabytes": True}


@pytest.mark.parametrize(
    ("seconds", "megabytes", "answer_bytes", "missed"),
    [
        (63.0, 900.0, 1, "ratio"),
        (50.0, 3000.0, 1, "peak_megabytes"),
        (50.0, 900.0, 400_000_000, "answer_megabytes"),
    ],
)
def test_a_bar_that_is_missed_is_said(
    seconds: float, megabytes: float, answer_bytes: int, missed: str
) -> None:
    jobs = [JobUsage("infer/gras/tiny/0", 70.0, seconds, megabytes)]
    manifests = {"infer/gras/tiny/0": manifest(25_000)}

    figures = collect_figures(jobs, SPEED, manifests, images=50, answer_bytes=answer_bytes)

    assert [name for name, met in figures["bars"].items() if not met] == [missed]
    assert figures_as_markdown(figures).count("| **no** |") == 1


def test_stored_answers_are_not_taken_for_speed() -> None:
    jobs = [JobUsage("infer/gras/tiny/0", 2.0, 1.0, 300.0)]
    manifests = {"infer/gras/tiny/0": manifest(0, stored=25_000)}

    with pytest.raises(InferenceError, match="took its answers from the store"):
        collect_figures(jobs, SPEED, manifests, images=50, answer_bytes=1)


def test_the_table_has_each_rule_with_its_jobs() -> None:
    jobs = [
        JobUsage("infer/gras/tiny/0", 70.0, 50.0, 900.0),
        JobUsage("infer/gras/tiny/1", 80.0, 60.0, 800.0),
        JobUsage("judge_gras/tiny", 9.0, 8.0, 1500.0),
    ]
    manifests = {f"infer/gras/tiny/{shard}": manifest(25_000) for shard in (0, 1)}

    table = figures_as_markdown(
        collect_figures(jobs, SPEED, manifests, images=100, answer_bytes=170_400_000)
    )

    assert "| questions | 50,000 |  |  |" in table
    assert "| answers on disk, MB | 170 | < 400 | yes |" in table
    assert "| largest memory of a job, MB (judge_gras/tiny) | 1,500 | < 3,000 | yes |" in table
    assert "| infer | 2 | 110.0 | 80.0 | 900 |" in table


def test_manifests_are_named_as_their_jobs(tmp_path: Path) -> None:
    folder = tmp_path / "gras/responses/tiny"
    folder.mkdir(parents=True)
    (folder / "0.manifest.json").write_text('{"answers": {"asked": 3}}')
    (tmp_path / "gras/responses/tiny.manifest.json").write_text("{}")

    assert read_manifests(tmp_path / "gras") == {"infer/gras/tiny/0": {"answers": {"asked": 3}}}
    assert bytes_below(tmp_path) == len('{"answers": {"asked": 3}}') + 2


def test_shorter_lists_keep_the_balance_and_the_lines(lists: dict[str, Path]) -> None:
    """140 rows of FairFace and 60 of AI-Face: a quarter of them is 35 and 15."""
    short = shorten_lists(lists, 50)

    for dataset, rows in (("fairface", 35), ("ai_face", 15)):
        header, *whole = lists[dataset].read_text().splitlines()
        first, *kept = short[dataset].splitlines()
        assert first == header
        assert len(kept) == rows
        assert [line for line in whole if line in set(kept)] == kept, "the lines, in their order"
    faces = pd.read_csv(StringIO(short["fairface"]))
    assert set(Counter(faces["age"]).values()) == {7}
    tones = pd.read_csv(StringIO(short["ai_face"]))
    assert set(Counter(tones["Skin Tone"]).values()) == {1, 2}


@pytest.mark.parametrize("images", [1, 201])
def test_an_impossible_number_of_images_is_refused(lists: dict[str, Path], images: int) -> None:
    with pytest.raises(ConfigError, match=f"full_size_images is {images}, and the lists have 200"):
        shorten_lists(lists, images)


def test_a_section_of_a_document_is_replaced_and_the_rest_stays(tmp_path: Path) -> None:
    document = tmp_path / "performance.md"
    document.write_text("# A\n<!-- x: begin -->\nold\n<!-- x: end -->\nafter \\1\n")

    replace_section(document, "x", "| new \\1 |\n")
    replace_section(document, "x", "| newer \\1 |\n")

    assert document.read_text() == (
        "# A\n<!-- x: begin -->\n| newer \\1 |\n<!-- x: end -->\nafter \\1\n"
    )


def test_a_document_without_the_markers_is_left_alone(tmp_path: Path) -> None:
    document = tmp_path / "performance.md"
    document.write_text("# A\n")

    with pytest.raises(ConfigError, match="there has to be one pair of lines .* and there are 0"):
        replace_section(document, "x", "new")

    assert document.read_text() == "# A\n"
