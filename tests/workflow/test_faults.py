"""A wrong set-up ends in a sentence that says what to do, and leaves nothing half-written."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace

import pandas as pd
import pytest

pytestmark = pytest.mark.workflow


@pytest.fixture
def broken(finished, tmp_path):
    """A fresh results folder beside the finished project's files."""
    folder = tmp_path / "vlmfair"
    shutil.copytree(
        finished.folder,
        folder,
        ignore=shutil.ignore_patterns("results", ".snakemake"),
        symlinks=True,
    )
    return type(finished)(folder, finished.settings)


def test_a_misspelt_key(broken):
    shown = broken.with_settings(gras={"permutation": 5}).snakemake("--dry-run", check=False)

    assert "config: gras: permutation is not a known key. Write permutations." in shown
    assert not (broken.folder / "results").exists()


def test_an_unknown_model(broken):
    shown = broken.with_settings(gras={"models": ["tiny-plantd"]}).snakemake(
        "--dry-run", check=False
    )

    assert "gras.models: tiny-plantd is not in config/models.yaml" in shown


def test_an_unknown_trait(broken):
    shown = broken.with_settings(gras={"traits": ["polit", "bad"]}).snakemake(
        "--dry-run", check=False
    )

    assert "gras.traits: polit is not a trait of GRAS. Write polite." in shown


def test_a_table_of_a_trait_that_is_not_asked_is_not_wanted(broken):
    asked = broken.with_settings(gras={"traits": ["bad", "rude", "polite", "brave"]})

    planned = asked.planned_rules()

    assert {"tabulate_gras_table_8", "tabulate_gras_table_9"} <= planned
    assert not planned & {"tabulate_gras_table_6", "tabulate_gras_table_7"}


def test_a_missing_raw_folder(broken):
    wrong = broken.with_settings(drawn_seed=None, datasets={"fairface": {"raw": "data/none"}})

    shown = wrong.snakemake("results/demo/samples/fairface/samples.parquet", check=False)

    assert "data/none: the raw folder is missing. Run snakemake --cores all retrieve_fairf" in shown
    assert "By hand: Download fairface-img-margin025" in shown
    assert not list((broken.folder / "results").rglob("samples*"))


def test_lists_that_are_not_the_published_ones(broken):
    digests = {"fairface": "0" * 64, "ai_face": ""}
    wrong = broken.with_settings(gras={"selection_sha256": digests})

    shown = wrong.snakemake("results/demo/gras/images.parquet", check=False)

    assert "selected_images_fairface.csv" in shown
    assert "0" * 12 in shown
    assert not (broken.folder / "results/demo/gras/images.parquet").exists()


def test_a_model_folder_without_a_tokenizer(broken):
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (broken.folder / "resources/demo/tiny-control" / name).unlink()

    shown = broken.snakemake("results/demo/gras/responses/tiny-control/0.parquet", check=False)

    assert "tiny-control" in shown
    assert "tokenizer" in shown
    assert not list((broken.folder / "results/demo/gras/responses").rglob("*.parquet"))


def test_a_list_with_more_images_than_the_config_announces(broken):
    wrong = broken.with_settings(gras={"images_per_shard": 30})
    wrong.snakemake("results/demo/gras/images.parquet")
    fewer = wrong.with_settings(gras={"per_tone": 1, "per_cell": 1})
    plan = "results/demo/gras/requests/tiny-control.parquet"

    shown = fewer.snakemake(plan, "--rerun-triggers", "mtime", check=False)

    assert "the image set needs 4 shards" in shown
    assert not (broken.folder / plan).exists()


def test_images_that_vanish_before_inference_stop_the_run(broken):
    broken.snakemake("results/demo/gras/requests/tiny-control.parquet")
    for path in (broken.folder / "results/demo/raw/fairface/train").glob("*.jpg"):
        path.unlink()
    answers = "results/demo/gras/responses/tiny-control/1.parquet"

    shown = broken.snakemake(answers, "--rerun-triggers", "params", "--retries", "1", check=False)

    assert "images have failed answers" in shown
    assert not (broken.folder / answers).exists()
    # The second attempt finds the answers of the first one: a fault that stays wastes no model run.
    log = (broken.folder / "results/demo/logs/infer/gras/tiny-control/1.log").read_text()
    assert shown.count("Trying to restart job") == 1
    assert re.search(r"[1-9]\d* answers from the store, 120 computed", log), "6 images are lost"


def test_a_missing_example_image_is_no_figure_with_a_hole(finished, tmp_path):
    shutil.copytree(finished.folder, tmp_path / "vlmfair", symlinks=True)
    project = replace(finished, folder=tmp_path / "vlmfair")
    results = project.folder / "results/demo"
    example = pd.read_csv(results / "gras/figures/figure_1.csv")["sample_id"][0]
    images = pd.read_parquet(results / "gras/images.parquet").set_index("sample_id")["image"]
    (project.folder / images[example]).unlink()
    (results / "gras/figures/figure_1.png").unlink()

    shown = project.snakemake("results/demo/gras/figures/figure_1.png", check=False)

    assert f"{images[example]}: the image that Figure 1 shows is missing. Put it back" in shown
    assert not list((results / "gras/figures").glob("figure_1.*"))


def test_too_many_lost_images_name_a_file_that_is_there(broken):
    broken.snakemake("results/demo/raw/fairface", "results/demo/raw/ai_face")
    for path in (broken.folder / "results/demo/raw/fairface/train").glob("*.jpg"):
        path.unlink()

    shown = broken.snakemake("results/demo/gras/images.parquet", check=False)

    named = re.search(r"Complete the raw folder; (\S+) has the reasons", shown)
    assert named, shown[-2000:]
    assert named[1] == "results/demo/samples/fairface/problems.parquet"
    assert (broken.folder / named[1]).is_file()
