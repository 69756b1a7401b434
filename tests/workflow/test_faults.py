"""A wrong set-up ends in a sentence that says what to do, and leaves nothing half-written."""

from __future__ import annotations

import shutil

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

    assert "data/none: the raw folder is missing. Download fairface-img-margin025" in shown
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
    answers = "results/demo/gras/responses/tiny-control/0.parquet"

    shown = broken.snakemake(answers, "--rerun-triggers", "params", check=False)

    assert "images have failed answers" in shown
    assert not (broken.folder / answers).exists()
