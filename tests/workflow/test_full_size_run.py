"""The full-size run of GRAS on the lists it is given, tried with few images and traits."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from vlmfair.bench.full_size import bytes_below, collect_figures, read_jobs, read_manifests
from vlmfair.demo.raw_data import draw_selection
from vlmfair.papers.gras.artefacts import LIST_FILES

pytestmark = pytest.mark.workflow

IMAGES = 40
FEW = {"traits": ["bad", "polite"]}


@pytest.fixture
def trial(fresh, tmp_path):
    """A project that is given two lists of 70 and 30 images, and is to take 40 of them."""
    draw_selection(tmp_path / "lists", per_cell=1, per_tone=3, seed=5)
    given = {"gras_selection": str(tmp_path / "lists"), "full_size_images": IMAGES, "gras": FEW}
    return replace(fresh, settings=given)


@pytest.mark.slow
def test_a_trial_draws_asks_and_measures_what_it_took(trial, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("VLMFAIR_DEVICES", "6,7")
    trial = trial.with_settings(inference={"device": "auto", "gpus": 1})
    suite = f"results/full_size_{IMAGES}"

    trial.snakemake(
        f"{suite}/gras/responses/tiny-planted.parquet", f"{suite}/speed/tiny-planted.json"
    )

    suite = trial.folder / suite
    jobs = read_jobs(suite / "benchmarks", suite / "logs")
    figures = collect_figures(
        jobs,
        json.loads((suite / "speed/tiny-planted.json").read_text()),
        read_manifests(suite / "gras"),
        images=IMAGES,
        answer_bytes=bytes_below(suite / "answers"),
    )
    assert {job.job for job in jobs} == {
        "take_selection",
        *(f"{rule}/{name}" for rule in ("draw_listed", "prepare_dataset") for name in LIST_FILES),
        "select_gras_images",
        "plan_gras/tiny-planted",
        "infer/gras/tiny-planted/0",
        "gather_responses/gras/tiny-planted",
        "compare_speed/tiny-planted",
    }
    assert all(job.peak_megabytes > 20 and job.cpu_seconds > 0.1 for job in jobs)
    log = (suite / "logs/infer/gras/tiny-planted/0.log").read_text()
    assert "1 device of 2 leased: 6" in log
    # Two questions in five wordings about each of 40 images.
    assert figures["questions"] == 400
    assert figures["plain_questions_per_second"] > 0
    assert 0.001 < figures["answer_megabytes"] < 1


def test_the_full_run_has_all_images_of_the_authors_lists_and_of_no_others(trial):
    whole = replace(trial, settings={"gras_selection": trial.settings["gras_selection"]})

    planned = whole.snakemake("--dry-run", "gras_full_size")

    counts = dict(re.findall(r"^(\w+) +(\d+)$", planned, flags=re.MULTILINE))
    assert counts["infer"] == "10", "5,010 images in shards of 501"
    taken = "results/full_size/raw/gras/selected_images_fairface.csv"
    shown = whole.snakemake(taken, check=False)
    assert "selected_images_aiface.csv: the SHA-256 is" in shown
    assert not (whole.folder / taken).exists()


def test_without_lists_it_says_how_to_give_them(trial):
    nothing = trial.with_settings(gras_selection="")

    shown = nothing.snakemake("--dry-run", "gras_full_size", check=False)

    assert "gras_full_size needs the folder of the authors' two selection lists" in shown
    assert "--config gras_selection=DIR" in shown


def test_a_folder_without_the_lists_is_named(trial):
    wrong = trial.with_settings(gras_selection="data/none")

    shown = wrong.snakemake("--dry-run", "gras_full_size", check=False)

    assert "data/none/selected_images_fairface.csv: the selection list is missing. Fetch" in shown


def test_another_suite_cannot_be_mixed_with_it(trial):
    shown = trial.with_settings(suite="paper").snakemake("--dry-run", "gras_full_size", check=False)

    assert "gras_selection is for the full-size run" in shown
    assert "Leave out the one with suite: paper." in shown
