"""The catalogue of models names every model of the three papers, with the facts to plan by."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from vlmfair.errors import ConfigError
from vlmfair.models.components import Component, load_components
from vlmfair.models.readiness import known_families, needs_legacy_environment
from vlmfair.models.registry import ModelEntry, load_registry
from vlmfair.sheets import models_by_paper

# GRAS, section 4 and appendix A.2; fairness of LVLMs, Table 2; VL-BICLE, section 4.
PAPERS = {
    "gras": {
        "Salesforce/blip2-opt-2.7b",
        "google/paligemma2-3b-mix-224",
        "llava-hf/llava-1.5-7b-hf",
        "microsoft/Phi-4-multimodal-instruct",
        "Qwen/Qwen2.5-VL-3B-Instruct",
    },
    "lvlm_fairness": {
        "gpt-4o-2024-11-20",
        "gemini-1.5-pro-002",
        "llava-hf/llava-1.5-7b-hf",
        "llava-hf/llava-1.5-13b-hf",
        "models/sharegpt4v-7b",
        "models/sharegpt4v-13b",
        "openbmb/MiniCPM-Llama3-V-2_5",
        "llava-hf/llava-v1.6-34b-hf",
        "meta-llama/Llama-3.2-11B-Vision-Instruct",
    },
    "vl_bicle": {
        "Qwen/Qwen-VL-Chat",
        "HuggingFaceM4/Idefics3-8B-Llama3",
        "microsoft/Phi-3.5-vision-instruct",
        "openbmb/MiniCPM-o-2_6",
        "OpenGVLab/InternVL3_5-8B-HF",
        "Qwen/Qwen3-VL-8B-Instruct",
    },
}
# Its class is not in transformers, and its own code has no module here.
WITHOUT_MODULE = {"minicpm-llama3-v-2.5"}


@pytest.fixture(scope="module")
def registry(root: Path) -> dict[str, ModelEntry]:
    return load_registry(root / "config/models.yaml")


@pytest.fixture(scope="module")
def components(root: Path) -> dict[str, Component]:
    return load_components(root / "config/models.yaml")


@pytest.mark.parametrize("paper", PAPERS)
def test_every_model_of_a_paper_is_there(registry: dict[str, ModelEntry], paper: str) -> None:
    found = {
        entry.api.api_model if entry.api else entry.repository or entry.path
        for entry in registry.values()
        if paper in entry.papers and entry.kind == "vlm"
    }

    assert found == PAPERS[paper]


def test_what_the_papers_use_beside_models_is_there(
    registry: dict[str, ModelEntry], components: dict[str, Component]
) -> None:
    assert {name for name, entry in registry.items() if entry.kind == "judge"} == {"gpt-oss-20b"}
    assert {(entry.kind, name) for name, entry in components.items()} == {
        ("encoder", "clip-vit-b-32"),
        ("encoder", "sentence-t5-xxl"),
        ("encoder", "vit-b-16-in21k"),
        ("generator", "flux.1-dev"),
        ("generator", "stable-diffusion-3.5-large"),
    }
    assert all(entry.papers and entry.memory_gb for entry in components.values())


def test_local_models_state_what_a_plan_needs(registry: dict[str, ModelEntry]) -> None:
    for name, entry in registry.items():
        if entry.api is not None or not entry.papers:
            continue
        legacy = needs_legacy_environment(entry.family) or name in WITHOUT_MODULE
        assert entry.env == ("inference-legacy" if legacy else "inference"), name
        assert entry.memory_gb, name
        assert entry.context_length, name
        assert (entry.family in known_families()) == (name not in WITHOUT_MODULE), name


def test_no_commit_is_stated_that_nobody_has_downloaded(
    registry: dict[str, ModelEntry], components: dict[str, Component]
) -> None:
    assert {entry.revision for entry in (*registry.values(), *components.values())} == {None}


def test_the_paper_suite_asks_models_of_the_sheet(
    root: Path, registry: dict[str, ModelEntry]
) -> None:
    config = yaml.safe_load((root / "config/paper.yaml").read_text())

    for paper, names in models_by_paper(config).items():
        for name in names:
            assert paper in registry[name].papers, (paper, name)


def test_a_component_may_not_have_the_name_of_a_model(tmp_path: Path) -> None:
    component = {"kind": "encoder", "repository": "a/b", "folder": "models/b"}
    model = {"path": "weights", "family": "llava", "dtype": "float32", "attention": "sdpa"}
    sheet = tmp_path / "models.yaml"
    sheet.write_text(yaml.safe_dump({"models": {"b": model}, "components": {"b": component}}))

    load_registry(sheet)
    with pytest.raises(ConfigError, match="b is the name of a model and of a component"):
        load_components(sheet)
