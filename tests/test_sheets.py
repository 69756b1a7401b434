"""The configuration and its sheets refer to each other; what does not exist is named at once."""

from __future__ import annotations

import copy
import shutil

import pytest
import yaml

from vlmfair.config import read_yaml
from vlmfair.errors import ConfigError
from vlmfair.sheets import load_sheets


@pytest.fixture(scope="module")
def config(root):
    return read_yaml(root / "config/config.yaml")


@pytest.fixture
def project(root, tmp_path):
    """A root folder with the project's configuration, to be changed."""
    shutil.copytree(root / "config", tmp_path / "config")
    return tmp_path


def change_sheet(project, name, **settings):
    path = project / "config/models.yaml"
    sheet = yaml.safe_load(path.read_text())
    sheet["models"][name].update(settings)
    path.write_text(yaml.safe_dump(sheet))


def test_the_committed_sheets_fit_together(root, config):
    files = [root / "config/config.yaml", root / "config/paper.yaml"]

    sheets = load_sheets(config, root, files)

    assert set(sheets.models) == set(sheets.registry)
    assert sheets.registry["tiny-planted"].sheet == "config/models.yaml"
    assert {"fairface", "ai_face"} <= set(sheets.datasets)


def test_an_image_transform_of_an_unknown_dataset(project, config):
    change_sheet(project, "tiny-control", image_transforms={"ai-face": "resize:256x256"})

    with pytest.raises(ConfigError) as caught:
        load_sheets(config, project)

    assert str(caught.value).startswith(
        "config/models.yaml: tiny-control.image_transforms: ai-face is not a dataset of "
        "config/datasets.yaml. Write one of ai_face, "
    )


def test_a_model_that_is_not_in_a_sheet_of_another_name(project, config):
    (project / "config/models.yaml").rename(project / "mine.yaml")
    changed = {**copy.deepcopy(config), "models_file": "mine.yaml"}
    changed["gras"]["models"] = ["tiny"]

    with pytest.raises(ConfigError, match=r"gras.models: tiny is not in mine.yaml. Add an entry"):
        load_sheets(changed, project)


@pytest.mark.parametrize("key", ["models", "generator"])
def test_every_model_that_a_paper_names_is_in_the_sheet(root, config, key):
    changed = copy.deepcopy(config)
    changed["lvlm_fairness"][key] = ["gpt"] if key == "models" else "gpt"

    with pytest.raises(ConfigError, match=rf"lvlm_fairness.{key}: gpt is not in config/models"):
        load_sheets(changed, root)


@pytest.mark.parametrize("file", ["config/config.yaml", "config/models.yaml"])
def test_a_key_that_stands_twice_in_any_of_the_files(project, config, file):
    path = project / file
    path.write_text(path.read_text() + f"\n{'models: {}' if 'models' in file else 'suite: b'}\n")

    with pytest.raises(ConfigError, match=rf"{file}: line \d+: the key (models|suite) stands"):
        load_sheets(config, project, [project / "config/config.yaml"])


def test_another_suite_alone_says_where_its_raw_files_are_drawn(root, config):
    changed = {**copy.deepcopy(config), "suite": "demo2"}
    for name, settings in changed["datasets"].items():
        if name != "fairface":
            settings["raw"] = f"results/demo2/raw/{name}"

    with pytest.raises(ConfigError) as caught:
        load_sheets(changed, root)

    assert str(caught.value) == (
        "config: drawn_seed has the raw files of the suite demo2 drawn below results/demo2/raw, "
        "and datasets.fairface.raw, gras.selection_lists name another folder. Write "
        "datasets.fairface.raw: results/demo2/raw/fairface, gras.selection_lists: "
        "results/demo2/raw/gras; or drawn_seed: null for a download of your own."
    )


def test_a_raw_folder_that_nothing_draws(root, config):
    changed = copy.deepcopy(config)
    changed["datasets"]["ai_face"]["raw"] = "data/none"

    with pytest.raises(ConfigError, match=r"and datasets.ai_face.raw names another folder. Write"):
        load_sheets(changed, root)


def test_folders_are_free_where_nothing_is_drawn_or_no_list_is_read(root, config):
    own = copy.deepcopy(config)
    own["datasets"]["ai_face"]["raw"] = "data/none"
    resampled = copy.deepcopy(config)
    resampled["gras"].update(selection="resample", selection_lists="anywhere")
    resampled["datasets"]["ai_face"]["raw"] = "results/demo/raw/../raw/ai_face/"

    assert load_sheets({**own, "drawn_seed": None}, root)
    assert load_sheets(resampled, root)
