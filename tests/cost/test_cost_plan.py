"""The plan of a run: what it counts, what it says, and what a table of it looks like."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from vlmfair.cost.counts import asked_by
from vlmfair.cost.drawing import drawing_estimates, load_denoisers
from vlmfair.cost.estimate import Card, Estimate
from vlmfair.cost.plan import (
    Resources,
    estimates_of,
    load_resources,
    notes_on,
    plan_parts,
)
from vlmfair.cost.subject import make_subject
from vlmfair.cost.table import as_frame, as_markdown, as_table, write_plan
from vlmfair.cost.tokens import FRAMES, asked_text
from vlmfair.models.components import load_components
from vlmfair.models.registry import load_registry
from vlmfair.papers.vl_bicle.tasks import TASKS

CARD = Card("NVIDIA A100", 312, 2039, 0.35)
GRAS_FIVE = [
    *("paligemma2-3b-mix-224", "llava-1.5-7b", "qwen2.5-vl-3b", "blip2-opt-2.7b"),
    "phi-4-multimodal",
]


@pytest.fixture(scope="module")
def config(root: Path) -> dict[str, Any]:
    """The demo's settings with real models, without generated sub-questions."""
    config = yaml.safe_load((root / "config/config.yaml").read_text())
    config["gras"] |= {"models": GRAS_FIVE, "traits": "all"}
    config["lvlm_fairness"] |= {"models": ["gpt-4o", "llava-1.5-7b"], "max_new_tokens": 512}
    config["vl_bicle"] |= {
        "models": ["qwen3-vl-8b", "qwen-vl"],
        "question_models": ["qwen3-vl-8b"],
        "judge": "gpt-oss-20b",
    }
    config["vl_bicle"]["synthesis"] |= {"models": [], "generators": {}}
    return config


@pytest.fixture(scope="module")
def resources(root: Path) -> Resources:
    return load_resources(root / "resources")


@pytest.fixture(scope="module")
def parts(root: Path, config: dict[str, Any], resources: Resources, tmp_path_factory: Any) -> Any:
    asked = asked_by(
        config,
        resources,
        {"fairface": 3570, "ai_face": 1440},
        {"facet": 5481, "utkface": 24106},
        dict.fromkeys(TASKS, 100),
        {},
    )
    cache = tmp_path_factory.mktemp("empty")
    return plan_parts(config, load_registry(root / "config/models.yaml"), resources, asked, cache)


@pytest.fixture(scope="module")
def estimates(parts: Any, resources: Resources) -> list[Estimate]:
    return estimates_of(parts, CARD, resources, {("gras", "llava-1.5-7b"): 10})


def row(estimates: list[Estimate], paper: str, model: str) -> Estimate:
    (found,) = [one for one in estimates if (one.paper, one.model) == (paper, model)]
    return found


def test_requests_are_those_of_the_papers(estimates: list[Estimate]) -> None:
    # GRAS: 5,010 images x 500 questions. FACET: three prompts, four sub-questions and a final one;
    # UTKFace: gender and race. VL-BICLE: once without, and 20 sequences at 2, 4, 6 and 8 shots.
    assert row(estimates, "gras", "llava-1.5-7b").amounts.requests == 2_505_000
    people, faces = 5481 * (3 + 4 + 1), 24106 * 2
    found = row(estimates, "lvlm_fairness", "llava-1.5-7b").amounts.requests
    assert found == pytest.approx(people + faces)
    shared, retrieved = 100 * (1 + 20 * 4), 100 * 4 * 4
    assert row(estimates, "vl_bicle", "qwen3-vl-8b").amounts.requests == 6 * shared + retrieved
    assert row(estimates, "vl_bicle", "qwen-vl").amounts.requests == 4 * shared + retrieved
    assert row(estimates, "vl_bicle", "gpt-oss-20b").amounts.requests == 2 * shared


def test_sharing_follows_the_family(estimates: list[Estimate]) -> None:
    llava, paligemma, gpt = (
        row(estimates, *key).amounts
        for key in (
            ("gras", "llava-1.5-7b"),
            ("gras", "paligemma2-3b-mix-224"),
            ("lvlm_fairness", "gpt-4o"),
        )
    )

    # docs/performance.md: 33 to 42 times less for a LLaVA, whose beginnings are shared.
    assert 30 < llava.asked / llava.computed < 45
    assert paligemma.asked == paligemma.computed
    assert (paligemma.images, paligemma.encoded) == (2_505_000, 5_010)
    assert gpt.asked == gpt.computed
    legacy = row(estimates, "vl_bicle", "qwen-vl").amounts
    assert legacy.asked == legacy.computed


def test_hours_follow_from_the_card(parts: Any, resources: Resources) -> None:
    faster = dataclasses.replace(CARD, peak_tflops=624, bandwidth_gb_s=4078)

    slow, fast = (
        row(estimates_of(parts, card, resources, {}), "vl_bicle", "qwen3-vl-8b")
        for card in (CARD, faster)
    )

    assert slow.ours.flops == fast.ours.flops
    assert slow.ours.hours == pytest.approx(2 * (fast.ours.hours or 0))


def test_money_is_tokens_by_the_sheets_prices(estimates: list[Estimate]) -> None:
    found = row(estimates, "lvlm_fairness", "gpt-4o")

    # 2.5 and 10 US dollars for a million tokens of questions and answers.
    expected = found.amounts.asked * 2.5e-6 + found.amounts.answered * 10e-6
    assert found.money == pytest.approx(expected)
    assert found.plain.hours is None
    assert row(estimates, "vl_bicle", "gpt-oss-20b").money == 0


def test_the_published_hours_stand_beside_ours(
    parts: Any, estimates: list[Estimate], resources: Resources
) -> None:
    notes = notes_on(parts, estimates, CARD, resources, money_cap=10)

    (gras,) = [note for note in notes if note.startswith("gras:")]
    plain = sum(one.plain.hours or 0 for one in estimates if one.paper == "gras")
    ours = sum(one.ours.hours or 0 for one in estimates if one.paper == "gras")
    assert "about 750 hours on one A100 for its 5 models" in gras
    assert f"those of this run take {plain:,.3g} in the plain form and {ours:,.3g} in" in gras
    # One forward at a time leaves a card mostly idle: less than its 35 %, and not next to nothing.
    assert 100 < plain < 750
    assert ours < plain / 5
    assert any("more than inference.money_cap, 10, at which" in note for note in notes)


def test_prompts_that_no_context_holds_are_said(
    root: Path, config: dict[str, Any], resources: Resources
) -> None:
    registry = load_registry(root / "config/models.yaml")
    registry["qwen3-vl-8b"] = dataclasses.replace(registry["qwen3-vl-8b"], context_length=1000)
    asked = asked_by(
        config, resources, {}, {"facet": 13, "utkface": 1}, dict.fromkeys(TASKS, 10), {}
    )

    parts = plan_parts(config, registry, resources, asked)

    notes = notes_on(parts, estimates_of(parts, CARD, resources, {}), CARD, resources, None)
    assert any("longer on average than the 1,000 tokens of its context" in note for note in notes)


def test_the_table_has_a_row_for_each_model_and_sums(
    parts: Any, estimates: list[Estimate], resources: Resources, tmp_path: Path
) -> None:
    frame = as_frame(estimates)

    gras = frame[frame["paper"] == "gras"]
    assert list(gras["model"]) == [*GRAS_FIVE, "all"]
    assert gras["requests"].iloc[-1] == 5 * 2_505_000
    assert tuple(frame[["paper", "model"]].iloc[-1]) == ("all", "all")
    # A model of two papers lies on the disk once.
    once = frame[frame["model"] != "all"].drop_duplicates("model")["weights_gb"].sum()
    assert frame["weights_gb"].iloc[-1] == pytest.approx(once)
    assert frame.set_index(["paper", "model"])["inference_jobs"]["gras", "llava-1.5-7b"] == 10

    table = as_table(frame, CARD, notes_on(parts, estimates, CARD, resources, None))
    write_plan(table, tmp_path / "plan_cost")
    lines = as_markdown(table).splitlines()
    assert len({len(line) for line in lines[: len(frame) + 2]}) == 1, "columns are aligned"
    assert (tmp_path / "plan_cost.md").read_text() == as_markdown(table)
    assert "NVIDIA A100" in (tmp_path / "plan_cost.html").read_text()
    written = pd.read_csv(tmp_path / "plan_cost.csv")
    assert list(written["requests"]) == list(frame["requests"])
    assert set(written["estimated"]) >= {"text, sizes, answers, counts"}


def test_drawing_costs_steps_and_passes(root: Path) -> None:
    """FLUX.1-dev, 1,024 x 1,024 pixels: 4,096 places and 512 tokens of the caption, by hand."""
    sheet = root / "config/models.yaml"
    settings = {"path": "models/flux.1-dev", "steps": 50, "height": 1024, "width": 1024}
    unknown = {"path": "somewhere", "steps": 5, "height": 96, "width": 96}
    denoisers = load_denoisers(root / "resources/cost/architectures.yaml")

    flux, other = drawing_estimates(
        {"flux": {**settings, "max_tokens": 512}, "other": unknown, "none": None},
        load_components(sheet),
        denoisers,
        1000,
        CARD,
        10,
        announced=True,
    )

    tokens = 4096 + 512
    expected = 1000 * 50 * (2 * 11.9e9 * tokens + 4 * 57 * 3072 * tokens**2)
    assert flux.ours.flops == pytest.approx(expected)
    assert (flux.amounts.requests, flux.jobs, flux.weights_gb) == (1000, 10, 33.7)
    assert (other.ours.hours, other.estimated) == (None, ("counts",))
    assert {name for name, one in load_components(sheet).items() if one.kind == "generator"} == set(
        denoisers
    )


def test_chat_formats_are_those_of_the_checkpoints(root: Path) -> None:
    """The golden prompts say what each stock family's own template writes."""
    golden = yaml.safe_load((root / "tests/models/golden_prompts.json").read_text())
    # LLaVA-1.6's is that of another language model than the paper's.
    for family in set(golden) - {"llava_next"}:
        found = asked_text(family, "Is the person honest?")
        expected = golden[family]["one_image"].replace("<|image_pad|>", "<image>")
        expected = expected.replace("<IMG_CONTEXT>", "<image>").replace("<|image|>", "<image>")
        assert found.removeprefix("<s>") == expected, family
    assert set(golden) <= set(FRAMES)


def test_a_model_that_is_there_is_read_from_its_folder(root: Path, resources: Resources) -> None:
    entry = load_registry(root / "config/models.yaml")["tiny-planted"]
    entry = dataclasses.replace(entry, path=str(root / "resources/demo/tiny-planted"))

    subject = make_subject(entry, resources.architectures)

    assert subject.tokenizer.exact
    assert subject.image("facet", resources.assumptions.image_sizes).tokens == 36
