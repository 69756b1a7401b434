"""What may be downloaded is on request; what may not says what to do, and the demo draws."""

from __future__ import annotations

import json

import pytest
import yaml

pytestmark = pytest.mark.workflow

RAW = {
    name: {"raw": f"data/{name}"}
    for name in (
        *("fairface", "ai_face", "facet", "utkface"),
        *("visogender", "coco_bias", "dci", "visual_cot"),
    )
}


@pytest.fixture
def real(fresh):
    """A suite whose raw files are downloaded and none of which is there."""
    return fresh.with_settings(
        suite="real", drawn_seed=None, datasets=RAW, gras={"selection_lists": "data/gras"}
    )


def test_a_suite_that_draws_its_files_downloads_nothing(fresh):
    shown = fresh.snakemake("retrieve", check=False)

    assert (
        "The raw files of the suite demo are drawn, and nothing is downloaded. Run again" in shown
    )
    assert not (fresh.folder / "data").exists()


def test_what_is_gated_stops_with_its_own_sentence(real):
    shown = real.snakemake("retrieve_facet", check=False)

    assert (
        "ERROR data/facet: facet lacks annotations and images, which cannot be downloaded here: a "
        "licence has to be accepted first. Ask for FACET at https://ai.meta.com"
    ) in shown
    assert "Traceback" not in shown
    assert json.loads((real.folder / "results/real/retrieved/facet.json").read_text()) == {
        "dataset": "facet",
        "files": [],
    }


def test_no_configuration_lets_a_download_into_the_own_network(real):
    path = real.folder / "config/datasets.yaml"
    sheet = yaml.safe_load(path.read_text())
    (file,) = sheet["lists"]["gras"]["files"][:1]
    sheet["lists"]["gras"]["files"] = [{**file, "from": ["http://127.0.0.1:80/list.csv"]}]
    path.write_text(yaml.safe_dump(sheet))

    shown = real.snakemake("retrieve_gras_lists", check=False)

    assert "address is refused, because 127.0.0.1 is no public address" in shown
    assert "Traceback" not in shown


def test_a_run_downloads_only_where_its_config_says_so(real):
    samples = [f"results/real/samples/{name}/samples.parquet" for name in ("visogender", "dci")]

    assert real.planned_rules(*samples) == {"prepare_dataset"}
    willing = real.with_settings(retrieve=True)
    downloads = {"retrieve_dataset", "retrieve_photographs"}
    assert willing.planned_rules(*samples) == {"prepare_dataset", *downloads}
    assert real.planned_rules("retrieve") == {"retrieve", *downloads}, "on request"


def test_a_missing_folder_names_the_command_that_downloads_it(real):
    shown = real.snakemake("results/real/samples/dci/samples.parquet", check=False)

    assert (
        "ERROR data/dci: the raw folder is missing. Run snakemake --cores all retrieve_dci "
        "--configfile <the config of this run> for what of it is not gated. By hand: Unpack "
    ) in shown
