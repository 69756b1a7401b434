"""What a second run computes: nothing, unless something that matters has changed."""

from __future__ import annotations

import os
import shutil

import pytest

pytestmark = pytest.mark.workflow

NOTHING = "Nothing to be done"


def test_a_second_run_has_nothing_to_do(finished):
    assert NOTHING in finished.snakemake("--dry-run")


def test_touching_scripts_modules_and_resources_re_runs_nothing(finished):
    touched = [
        *(finished.folder / "workflow/scripts").glob("*.py"),
        *(finished.folder / "vlmfair").rglob("*.py"),
        *(finished.folder / "workflow/rules").glob("*.smk"),
        finished.folder / "config/models.yaml",
        finished.folder / "resources/words/gras_traits.csv",
        finished.folder / "resources/prompts/gras.yaml",
    ]
    assert len(touched) > 40
    for path in touched:
        os.utime(path)

    assert NOTHING in finished.snakemake("--dry-run")


def test_a_function_that_only_figures_use_re_runs_only_figures(finished, restored):
    module = restored("vlmfair/papers/gras/figures.py")
    module.write_text(module.read_text() + "\n\ndef added_by_a_test() -> int:\n    return 1\n")

    planned = finished.planned_rules()

    assert planned
    assert all(name.startswith("plot_gras") or name == "build_report" for name in planned), planned


def test_a_changed_statistic_re_runs_measuring_but_not_inference(finished, restored):
    module = restored("vlmfair/stats/welch.py")
    module.write_text(module.read_text() + "\n\ndef added_by_a_test() -> int:\n    return 1\n")

    planned = finished.planned_rules()

    assert "measure_gras" in planned
    assert not planned & {"infer", "plan_gras", "judge_gras", "prepare_dataset", "draw_raw"}


def test_a_comment_re_runs_nothing(finished, restored):
    module = restored("vlmfair/contracts.py")
    module.write_text("# A remark.\n" + module.read_text())
    assert NOTHING in finished.snakemake("--dry-run")


def test_more_permutations_re_run_measuring_but_not_inference(finished):
    planned = finished.with_settings(gras={"permutations": 51}).planned_rules()

    assert "measure_gras" in planned
    assert "infer" not in planned


def test_lost_responses_come_back_from_the_answer_store(finished):
    """Deleting a result costs no model run: the answers are stored by content."""
    folder = finished.folder / "results/demo/gras/responses/tiny-control"
    before = {path.name: path.read_bytes() for path in folder.glob("*.parquet")}
    assert len(before) == 2, "100 images in shards of 60"
    shutil.rmtree(folder)

    finished.snakemake(*(f"results/demo/gras/responses/tiny-control/{name}" for name in before))

    assert {path.name: path.read_bytes() for path in folder.glob("*.parquet")} == before
    log = (finished.folder / "results/demo/logs/infer/gras/tiny-control/0.log").read_text()
    assert "0 computed" in log


def test_one_figure_alone_can_be_a_target(finished):
    figure = finished.folder / "results/demo/gras/figures/figure_3.png"
    before = figure.read_bytes()
    figure.unlink()

    finished.snakemake("results/demo/gras/figures/figure_3.png")

    assert figure.read_bytes() == before
