"""Calibration: what is planted is measured, and the control shows none of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from vlmfair.demo.calibrate import calibrate, calibration_table
from vlmfair.demo.effects import Effect
from vlmfair.demo.planted import load_planted
from vlmfair.papers.gras.questions import load_prompts

ROOT = Path(__file__).parents[2]
TABLE = load_planted(ROOT / "resources/demo/planted.yaml")
PROMPTS = load_prompts(ROOT / "resources/prompts/gras.yaml")
# Fewer would do for the logits, but a difference of two shares of 24 answers each already has a
# deviation of 0.06, half of its tolerance.
SCENES = 30


# Two draws of scenes: what holds for one draw only would be luck.
SEEDS = (11, 23)


@pytest.fixture(scope="module", params=SEEDS)
def planted(request: pytest.FixtureRequest) -> dict[str, Effect]:
    folder = ROOT / "resources/demo/tiny-planted"
    effects = calibrate(folder, TABLE, PROMPTS, scenes=SCENES, seed=request.param)
    return {effect.name: effect for effect in effects}


@pytest.fixture(scope="module", params=SEEDS)
def control(request: pytest.FixtureRequest) -> dict[str, Effect]:
    folder = ROOT / "resources/demo/tiny-control"
    effects = calibrate(folder, TABLE.control(), PROMPTS, scenes=SCENES, seed=request.param)
    return {effect.name: effect for effect in effects}


@pytest.mark.slow
def test_every_planted_effect_is_measured_within_its_tolerance(planted):
    assert [str(effect) for effect in planted.values() if not effect.ok] == []
    # What is planted is not within tolerance of nothing: a model without it would fail.
    sizes = [e for e in planted.values() if e.unit == "logit" and abs(e.planted) > 1]
    assert len(sizes) >= 15
    assert all(abs(effect.planted) > effect.tolerance for effect in sizes)


@pytest.mark.slow
def test_the_control_shows_none_of_the_effects(control):
    assert [str(effect) for effect in control.values() if not effect.ok] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "traits, gender: female - male, traits without it",
        "traits, age: 65 - 25 years, traits without it",
        "traits, skin_tone: 9 - 2, traits without it",
        "traits, race: White - Middle Eastern, traits without it",
        "demonstrations (8): pronoun, hooded, female - male only",
        "demonstrations (8): caption, hooded, female - male only",
    ],
)
def test_the_control_is_planted_with_nothing(control, name):
    assert control[name].planted == 0.0
    assert abs(control[name].measured) <= control[name].tolerance


def test_an_effect_outside_its_tolerance_is_not_ok():
    assert Effect("e", 1.2, 0.9, 10, 0.35, "logit").ok
    assert not Effect("e", 1.2, 0.8, 10, 0.35, "logit").ok


def test_the_table_sets_both_models_side_by_side():
    effects = [Effect("e", 1.0, 0.9, 10, 0.3, "logit")]
    others = [Effect("e", 0.0, 0.1, 10, 0.3, "logit")]
    last = calibration_table(effects, others).splitlines()[-1]
    assert last == "| e | +1.00 | +0.90 | +0.00 | +0.10 | 10 | 0.3 logit |"
