"""A wrong configuration ends in one sentence that names the key and the remedy."""

from __future__ import annotations

import copy
import itertools
import json
from pathlib import Path

import pytest
import yaml

from vlmfair.config import check_config, read_yaml
from vlmfair.errors import ConfigError

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def config(root):
    return read_yaml(root / "config/config.yaml")


@pytest.fixture(scope="module")
def schema(root):
    return root / "config/schemas/config.schema.json"


def merged(base: dict, top: dict) -> dict:
    result = copy.deepcopy(base)
    for key, value in top.items():
        result[key] = merged(result.get(key) or {}, value) if isinstance(value, dict) else value
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
        ({"gras": {"traits": "bad"}}, "gras.traits: .* Write all, or a list of trait words."),
        (
            {"gras": {"traits": ["bad"]}},
            "gras.traits: the list has 1 of at least 2 entries. "
            "Write at least two different trait words, or all.",
        ),
        ({"gras": {"traits": ["bad", "bad"]}}, "gras.traits: bad is listed twice. Write at least"),
        ({"gras": {"traits": ["bad", 3]}}, "gras.traits.1: 3 is not .* Write a trait word."),
        ({"gras": None}, "gras: there is no value. Write the keys of the section gras"),
        ({"gras": {"temperatures": [0.5]}}, "gras.temperatures: .0.5. lacks 1.0. Write a list"),
        (
            {"lvlm_fairness": {"judges": ["regx"]}},
            "lvlm_fairness.judges.0: .* Write regex, clip_text",
        ),
        (
            {"lvlm_fairness": {"choice_prompts": ["p1"]}},
            "lvlm_.*choice_prompts.0: .* Write p2 or p3.",
        ),
        ({"lvlm_fairness": {"invalid": "drop"}}, "lvlm_.*invalid: .* Write wrong or excluded."),
        ({"lvlm_fairness": {"encoders": {}}}, "lvlm_.*encoders: clip_text is missing. Write clip"),
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


def test_an_empty_folder_on_the_command_line_means_none(config, schema):
    # `--config gras_evaluation_results=` arrives as a key without a value.
    check_config({**config, "gras_evaluation_results": None}, schema, "config")


def checked_parts(schema, place=()):
    """Every part of a JSON schema that can refuse a value, with its place."""
    refusing = {"type", "enum", "const", "pattern", "minimum", "minItems", "uniqueItems"}
    if refusing & set(schema):
        yield place, schema
    for key in ("properties", "$defs"):
        for name, part in schema.get(key, {}).items():
            yield from checked_parts(part, (*place, name))
    for key in ("items", "additionalProperties", "propertyNames", "then", "else"):
        if isinstance(schema.get(key), dict):
            yield from checked_parts(schema[key], (*place, key))


@pytest.mark.parametrize("name", ["config", "models", "datasets"])
def test_whatever_a_schema_refuses_it_says_what_to_write(root, name):
    schema = json.loads((root / f"config/schemas/{name}.schema.json").read_text())
    parts = list(checked_parts(schema))

    assert len(parts) >= 8
    assert [place for place, part in parts if not part.get("description")] == []


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a: 1\nb: 2\na: 3\n", "models.yaml: line 3: the key a stands in line 1 already. Remove"),
        ("m:\n  x: {k: 1}\n  y: {k: 1, k: 2}\n", "line 3: the key k stands in line 3 already"),
        ("1: a\n2: b\n1: c\n", "line 3: the key 1 stands in line 1 already"),
        ("- a: 1\n  b: 1\n  b: 1\n", "line 3: the key b stands in line 2 already"),
    ],
)
def test_a_key_that_stands_twice_is_refused_with_its_line(tmp_path, text, sentence):
    path = tmp_path / "models.yaml"
    path.write_text(text)

    with pytest.raises(ConfigError, match=sentence):
        read_yaml(path)


def test_merged_keys_may_be_overridden(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text("base: &base {a: 1, b: 2}\nmine: {<<: *base, a: 3}\n")

    assert read_yaml(path)["mine"] == {"a": 3, "b": 2}


def test_every_yaml_file_of_the_project_passes(root):
    files = [*root.glob("config/*.yaml"), *root.glob("resources/**/*.yaml"), *root.glob("envs/*")]
    assert len(files) >= 8
    for path in files:
        assert read_yaml(path), path


@pytest.mark.parametrize("module", sorted((ROOT / "vlmfair").rglob("*.py")), ids=str)
def test_no_module_reads_yaml_past_the_check_for_repeated_keys(module):
    assert "yaml.safe_load" not in module.read_text(encoding="utf-8")


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
    together = {"per_tone", "bootstraps", "resample_draws"}
    for section in ("inference", "gras", "lvlm_fairness"):
        unexplained = set(config[section]) - explained - together
        assert not unexplained, f"{section}: {unexplained}"
    assert yaml.safe_load("per_tone: 8")  # explained together with per_cell
