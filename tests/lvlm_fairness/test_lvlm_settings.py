"""What the settings imply is known before anything runs: judges, encoders and names."""

from __future__ import annotations

import copy

import pytest

from vlmfair.config import read_yaml
from vlmfair.errors import ConfigError
from vlmfair.papers.lvlm_fairness import settings
from vlmfair.papers.lvlm_fairness.plan import evaluated_people
from vlmfair.papers.lvlm_fairness.settings import check_settings, encoder_files, missing_encoders


@pytest.fixture
def section(root):
    """The section lvlm_fairness of the paper's suite, which uses everything."""
    demo = read_yaml(root / "config/config.yaml")["lvlm_fairness"]
    paper = read_yaml(root / "config/paper.yaml")["lvlm_fairness"]
    encoders = {name: {**demo["encoders"][name], **paper["encoders"][name]} for name in ENCODERS}
    return copy.deepcopy({**demo, **paper, "encoders": encoders})


ENCODERS = ("clip_text", "sentence_t5", "vit")


def test_both_suites_are_sound(root, section):
    check_settings(read_yaml(root / "config/config.yaml")["lvlm_fairness"])
    check_settings(section)


def test_the_tables_show_a_judge_that_is_run(section):
    section["judges"] = ["strict"]

    with pytest.raises(ConfigError) as caught:
        check_settings(section)

    assert str(caught.value) == (
        "config: lvlm_fairness.table_judge is clip_text, which is not among "
        "lvlm_fairness.judges. Write one of strict, or add it there."
    )


@pytest.mark.parametrize(
    ("encoder", "key", "user"),
    [
        ("clip_text", "model", "clip_text"),
        ("sentence_t5", "path", "sentence_t5"),
        ("vit", "path", "vit"),
    ],
)
def test_an_encoder_that_is_needed_has_files(section, encoder, key, user):
    section["encoders"][encoder][key] = ""

    with pytest.raises(
        ConfigError, match=f"encoders.{encoder}: {key} is missing, and {user} needs it. Write {key}"
    ):
        check_settings(section)


def test_an_encoder_that_nothing_needs_may_be_without_files(section):
    section.update(judges=["strict", "regex"], baselines=[], table_judge="strict")
    section["encoders"] = {
        "clip_text": {"model": ""},
        "sentence_t5": {"path": ""},
        "vit": {"path": ""},
    }

    check_settings(section)

    assert encoder_files("strict", section) == ""


@pytest.mark.parametrize("name", ["clip", "vit", "data"])
def test_a_model_cannot_have_the_name_of_other_metrics(section, name):
    section["models"] = [name]

    with pytest.raises(ConfigError, match=f"the workflow calls something else {name}. Give"):
        check_settings(section)


def test_files_that_are_not_there_are_named_once_with_what_needs_them(section, tmp_path):
    (tmp_path / "models/vit-b-16-in21k").mkdir(parents=True)

    told = missing_encoders(
        ["strict", "clip_text", "clip", "vit", "sentence_t5"], section, tmp_path
    )

    assert told.startswith(
        "config: lvlm_fairness.encoders: 2 of 3 encoders are not there: "
        "models/clip-vit-b-32 (for clip), models/sentence-t5-xxl (for sentence_t5). Download them"
    )
    assert missing_encoders(["strict", "vit", ""], section, tmp_path) == ""


def test_an_architecture_needs_the_file_of_its_weights(section, tmp_path):
    section["encoders"]["clip_text"] = {"model": "ViT-B-32-quickgelu", "weights": "clip.pt"}

    assert encoder_files("clip_text", section) == "clip.pt"
    assert "clip.pt (for clip_text)" in missing_encoders(["clip_text"], section, tmp_path)


@pytest.mark.parametrize("per_cell", [1, 3])
def test_the_sheet_announces_as_many_drawn_images_as_there_are(root, tmp_path, per_cell):
    from vlmfair.datasets import parse_dataset
    from vlmfair.demo.raw_data import draw_raw

    sheet = read_yaml(root / "config/datasets.yaml")["datasets"]
    for dataset in sorted(set(settings.DATASET_OF.values())):
        draw_raw(tmp_path / dataset, dataset, per_cell=per_cell)
        samples = parse_dataset(dataset, tmp_path / dataset, threads=1).samples
        asked = len(evaluated_people(samples)) if dataset == "facet" else len(samples)
        drawn = sheet[dataset]["drawn"]

        # UTKFace's policy may leave out four incomplete names.
        announced = drawn["cells"] * per_cell + drawn["beside"]
        assert asked <= announced <= asked + 4
