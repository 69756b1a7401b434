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
        *(finished.folder / "resources/words").iterdir(),
        *(finished.folder / "resources/prompts").iterdir(),
    ]
    assert len(touched) > 40
    for path in touched:
        os.utime(path)

    assert NOTHING in finished.snakemake("--dry-run")


@pytest.mark.parametrize("paper", ["gras", "lvlm_fairness"])
def test_a_function_that_only_figures_use_re_runs_only_figures(finished, restored, paper):
    module = restored(f"vlmfair/papers/{paper}/figures.py")
    module.write_text(module.read_text() + "\n\ndef added_by_a_test() -> int:\n    return 1\n")

    planned = finished.planned_rules()

    assert "build_report" in planned
    assert all(name.startswith(f"plot_{paper}_") for name in planned - {"build_report"}), planned


@pytest.mark.parametrize(
    ("module", "measures", "other"),
    [
        ("welch", "measure_gras", "measure_lvlm_fairness"),
        ("proportions", "measure_lvlm_fairness", "measure_gras"),
    ],
)
def test_a_changed_statistic_re_runs_measuring_but_not_inference(
    finished, restored, module, measures, other
):
    path = restored(f"vlmfair/stats/{module}.py")
    path.write_text(path.read_text() + "\n\ndef added_by_a_test() -> int:\n    return 1\n")

    planned = finished.planned_rules()

    assert measures in planned
    assert other not in planned
    earlier = ("infer", "plan", "judge", "gather", "prepare", "draw")
    assert not [name for name in planned if name.startswith(earlier)]


def test_a_comment_re_runs_nothing(finished, restored):
    module = restored("vlmfair/contracts.py")
    module.write_text("# A remark.\n" + module.read_text())
    assert NOTHING in finished.snakemake("--dry-run")


def test_more_permutations_re_run_measuring_but_not_inference(finished):
    planned = finished.with_settings(gras={"permutations": 51}).planned_rules()

    assert "measure_gras" in planned
    assert "infer" not in planned


def test_touched_weights_re_run_nothing(finished):
    for path in (finished.folder / "resources/demo/tiny-control").iterdir():
        os.utime(path)

    assert NOTHING in finished.snakemake("--dry-run")


def test_changed_weights_re_run_inference_of_their_model(finished, restored):
    path = restored("resources/demo/tiny-control/model.safetensors")
    before, content = path.stat(), path.read_bytes()
    # The same size and the same date, as a copy that keeps dates leaves them.
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    shown = finished.snakemake("--dry-run")

    assert "Asking tiny-control the questions of gras" in shown
    assert "Asking tiny-planted the questions of gras" not in shown


@pytest.fixture
def without_raw_folder(finished):
    """The finished project, its drawn FairFace download gone until the test ends."""
    folder = finished.folder / "results/demo/raw/fairface"
    aside = folder.with_name("aside")
    folder.rename(aside)
    yield finished
    shutil.rmtree(folder, ignore_errors=True)
    aside.rename(folder)


def test_raw_folders_that_nothing_needs_are_not_drawn_again(without_raw_folder):
    assert NOTHING in without_raw_folder.snakemake("--dry-run")


@pytest.mark.parametrize(
    ("lost", "rule"),
    [
        ("results/demo/gras/figures/figure_1.png", "plot_gras_figure_1"),
        ("results/demo/gras/responses/tiny-control/0.parquet", "infer"),
    ],
)
def test_raw_folders_are_drawn_again_for_a_job_that_opens_images(
    without_raw_folder, restored, lost, rule
):
    restored(lost).unlink()

    assert {"draw_raw", rule} <= without_raw_folder.planned_rules(lost)


def test_a_figure_without_images_needs_no_raw_folder(without_raw_folder, restored):
    lost = "results/demo/gras/figures/figure_3.png"
    restored(lost).unlink()

    assert without_raw_folder.planned_rules(lost) == {"plot_gras_figure_3"}


def test_touching_a_raw_folder_and_a_stray_file_in_it_re_run_nothing(finished):
    folder = finished.folder / "results/demo/raw/fairface"
    (folder / "Thumbs.db").write_text("")
    os.utime(folder)
    try:
        assert NOTHING in finished.snakemake("--dry-run")
    finally:
        (folder / "Thumbs.db").unlink()


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
