"""A wrong configuration ends in one sentence that names the key and the remedy."""

from __future__ import annotations

import copy
import itertools

import pytest
import yaml

from vlmfair.config import check_config, read_yaml
from vlmfair.errors import ConfigError


@pytest.fixture(scope="module")
def config(root):
    return read_yaml(root / "config/config.yaml")


@pytest.fixture(scope="module")
def schema(root):
    return root / "config/schemas/config.schema.json"


def merged(base: dict, top: dict) -> dict:
    result = copy.deepcopy(base)
    for key, value in top.items():
        result[key] = merged(result[key], value) if isinstance(value, dict) else value
    return result


def test_both_suites_are_valid(root, config, schema):
    check_config(config, schema, "config")
    paper = read_yaml(root / "config/paper.yaml")
    check_config(merged(config, paper), schema, "config")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"gras": {"permutation": 5}}, "gras: permutation is not a known key. Write permutations."),
        ({"gras": {"alpha": 2}}, "gras.alpha: .* Write a level between 0 and 1."),
        ({"gras": {"selection": "balanced"}}, "gras.selection: .* Write published or resample."),
        (
            {"gras": {"temperatures": [0.5]}},
            "gras.temperatures: .* a list of positive temperatures",
        ),
        ({"inference": {"device": "gpu"}}, "inference.device: .* Write auto, cpu or cuda."),
        ({"suite": "../escape"}, "suite: .* results lie below results/<suite>"),
    ],
)
def test_each_fault_names_its_key_and_remedy(config, schema, change, sentence):
    broken = copy.deepcopy(config)
    for key, value in change.items():
        if isinstance(value, dict):
            broken[key].update(value)
        else:
            broken[key] = value

    with pytest.raises(ConfigError, match=f"^config: {sentence}") as caught:
        check_config(broken, schema, "config")

    assert "\n" not in str(caught.value)


def test_a_missing_key_says_what_to_write(config, schema):
    broken = copy.deepcopy(config)
    del broken["gras"]["seed"]
    with pytest.raises(ConfigError, match="gras: seed is missing. Write seed: <a whole number>."):
        check_config(broken, schema, "config")


def test_a_file_that_is_not_yaml_names_its_line(tmp_path):
    path = tmp_path / "models.yaml"
    path.write_text("models:\n  a: [1, 2\n")
    with pytest.raises(ConfigError, match="models.yaml: not valid YAML in line 3"):
        read_yaml(path)
    with pytest.raises(ConfigError, match="the file is missing"):
        read_yaml(tmp_path / "none.yaml")


def test_every_key_of_the_demo_is_explained(root, config):
    """config.yaml is the documentation: a comment stands above each key of the sections."""
    lines = (root / "config/config.yaml").read_text().splitlines()
    explained = {
        line.strip().split(":")[0]
        for above, line in itertools.pairwise(lines)
        if above.strip().startswith("#") and ":" in line
    }
    for section in ("inference", "gras"):
        unexplained = set(config[section]) - explained - {"per_tone", "bootstraps"}
        assert not unexplained, f"{section}: {unexplained}"
    assert yaml.safe_load("per_tone: 8")  # explained together with per_cell
