"""Models that cannot be asked are named together, before anything runs and without torch."""

from __future__ import annotations

import subprocess
import sys

import pytest

from vlmfair.models.families import FAMILIES, load_family
from vlmfair.models.readiness import (
    known_families,
    needs_legacy_environment,
    unready_models,
)
from vlmfair.models.registry import make_entry

SETTINGS = {"family": "llava", "dtype": "float32", "attention": "sdpa"}
REGISTRY = {
    name: make_entry(name, {**SETTINGS, **settings}, "mine.yaml")
    for name, settings in {
        "local": {"path": "weights"},
        "pinned": {"repository": "a/b", "revision": "0" * 40},
        "unpinned": {"repository": "a/b"},
        "unknown": {"path": "weights", "family": "martian"},
        "neither": {"repository": "a/b", "family": "venusian"},
    }.items()
}


SERVED = {
    "backend": "openai",
    "base_url": "https://example.org/v1",
    "api_model": "gpt",
    "price_input": 1.0,
    "price_output": 1.0,
}


def test_families_read_from_the_source_are_those_that_load() -> None:
    assert known_families() == tuple(sorted(FAMILIES))


def test_families_of_the_older_environment_are_those_that_bring_their_own_code() -> None:
    remote = {name for name in FAMILIES if load_family(name, name).needs_remote_code}

    assert remote == {"minicpm_o", "minicpm_v", "phi3_5_vision", "qwen_vl_v1"}
    assert {name for name in FAMILIES if needs_legacy_environment(name)} == remote
    assert not needs_legacy_environment("openai")


def test_models_that_can_be_asked_need_no_sentence() -> None:
    registry = {**REGISTRY, "served": make_entry("served", SERVED)}
    assert unready_models(["local", "pinned", "served"], registry) == ""
    assert unready_models([], registry) == ""


def test_every_model_is_named_with_everything_it_lacks() -> None:
    assert unready_models(list(REGISTRY), REGISTRY) == (
        "mine.yaml: 3 of 5 models cannot be asked yet: unpinned (no revision), "
        "unknown (no module for the family martian), "
        "neither (no module for the family venusian and no revision). "
        "Write revision: <40-hex commit of the model repository> in each entry, "
        "or run snakemake fetch_models, which locks the newest ones; "
        "leave out the models of martian, venusian, or add these modules to "
        f"vlmfair/models/families (it has {', '.join(sorted(FAMILIES))})."
    )


@pytest.mark.parametrize(
    ("name", "remedy"), [("unpinned", "Write revision:"), ("unknown", "Leave out the models of")]
)
def test_only_the_remedy_that_helps_is_given(name: str, remedy: str) -> None:
    sentence = unready_models(["local", name], REGISTRY)

    assert f". {remedy}" in sentence
    assert ("leave out" in sentence.lower()) == (name == "unknown")


def test_planning_loads_neither_torch_nor_pandas() -> None:
    code = (
        "import sys, vlmfair.sheets, vlmfair.models.readiness as r; r.known_families();"
        "r.needs_legacy_environment('llava');"
        "print(*{'torch', 'transformers', 'pandas', 'pyarrow'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
