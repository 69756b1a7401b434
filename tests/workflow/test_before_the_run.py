"""What cannot work is said before the first job runs, and planning still works."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

import pytest
import yaml

pytestmark = pytest.mark.workflow

SENTENCE = "config/models.yaml: 1 of 2 models cannot be asked yet: hub-model (no revision). Write"


@pytest.fixture
def unready(fresh):
    """A project that is to ask a model of the hub that no commit is stated for."""
    path = fresh.folder / "config/models.yaml"
    sheet = yaml.safe_load(path.read_text())
    sheet["models"]["hub-model"] = {
        "repository": "owner/name",
        "family": "llava",
        "dtype": "float32",
        "attention": "sdpa",
    }
    path.write_text(yaml.safe_dump(sheet))
    return fresh.with_settings(
        gras={"models": ["tiny-control", "hub-model"]},
        lvlm_fairness={"models": ["tiny-control"]},
        vl_bicle={
            "models": ["tiny-control"],
            "question_models": ["tiny-control"],
            "claim_models": ["tiny-control"],
            "synthesis": {"models": ["tiny-control"], "generators": {"flux": None, "sd35l": None}},
        },
    )


def test_a_model_without_a_revision_stops_the_run_before_its_first_job(unready):
    shown = unready.snakemake(check=False)

    assert shown.count(SENTENCE) == 1
    assert "Traceback" not in shown
    assert not (unready.folder / "results").exists()


def test_a_dry_run_plans_all_the_same_and_warns(unready):
    planned = unready.planned_rules()
    shown = unready.snakemake("--dry-run")

    assert {"prepare_dataset", "infer", "build_report"} <= planned
    assert shown.count(SENTENCE) == 1


def test_what_asks_no_model_runs(unready):
    lists = "results/demo/raw/gras/selected_images_fairface.csv"

    shown = unready.snakemake(lists)

    assert (unready.folder / lists).is_file()
    assert "cannot be asked" not in shown


def test_the_papers_suite_can_be_planned(fresh):
    paper = replace(
        fresh, settings=yaml.safe_load((fresh.folder / "config/paper.yaml").read_text())
    )

    shown = paper.snakemake("--dry-run")

    assert "This was a dry-run" in shown
    sections = [paper.settings[name]["models"] for name in ("gras", "lvlm_fairness")]
    for model in {*itertools.chain(*sections)} - {"gpt-4o"}:
        assert f"{model} (" in shown, "neither pinned nor named as unready"
    assert "3 of 3 encoders are not there: models/clip-vit-b-32 (for " in shown
    jobs = dict(re.findall(r"^(\w+) +(\d+)$", shown, flags=re.MULTILINE))
    # Of 5 models each: 5,481 images of FACET three times (questions, sub-questions, rationale) and
    # 24,106 of UTKFace in shards of 1,000; and once GPT-4o about sub-questions.
    fairness = 5 * (3 * 6 + 25) + 1
    # In jobs of 5 pairs of setting and run: 21 pairs of VisoGender-OO, -OP and DCI by 6 models, and
    # of both kinds of visual questions by 3; of COCOBias, in 3 parts of its 2,700 queries, 45 pairs
    # by the 4 models that see drawn images and 25 by the others. The judge: 3 x 2 x 1,000 x 81.
    vl_bicle = 6 * 3 * 5 + 3 * 2 * 5 + 3 * (4 * 9 + 2 * 5) + -(-486_000 // 5_000)
    assert int(jobs["infer_experiment"]) == fairness + vl_bicle
    assert int(jobs["total"]) < 5000


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"judges": ["regx"]}, "lvlm_fairness.judges.0: 'regx' is not one of"),
        (
            {"judges": ["strict", "sentence_t5"], "encoders": {"sentence_t5": {"path": ""}}},
            "lvlm_fairness.encoders.sentence_t5: path is missing, and sentence_t5 needs it. Write",
        ),
        (
            {"baselines": ["vit"], "encoders": {"vit": {"path": "models/none"}}},
            "encoders are not there: models/none (for vit). Download them",
        ),
        ({"generator": "gpt"}, "lvlm_fairness.generator: gpt is not in config/models.yaml. Add"),
        ({"models": ["gpt"]}, "lvlm_fairness.models: gpt is not in config/models.yaml. Add"),
    ],
)
def test_what_the_settings_of_lvlm_fairness_lack_is_said_at_once(fresh, settings, says):
    shown = fresh.with_settings(lvlm_fairness=settings).snakemake("lvlm_fairness", check=False)

    assert says in shown
    assert "Traceback" not in shown
    assert not (fresh.folder / "results").exists()


def test_another_suite_alone(fresh):
    shown = fresh.with_settings(suite="demo2").snakemake("--dry-run", check=False)

    assert re.search(r"Write .*\bdatasets.fairface.raw: results/demo2/raw/fairface, ", shown)
    assert "MissingInputException" not in shown


def test_a_repeated_key_of_the_configuration(fresh):
    path = fresh.folder / "config/config.yaml"
    path.write_text(path.read_text() + "\nsuite: demo2\n")

    shown = fresh.snakemake("--dry-run", check=False)

    assert re.search(r"config/config.yaml: line \d+: the key suite stands in line 5 already", shown)


def test_an_empty_value_for_the_published_results_means_none(fresh):
    shown = fresh.snakemake("--dry-run", "audit", "--config", "gras_evaluation_results=")

    assert "This was a dry-run" in shown
