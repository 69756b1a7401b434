"""Calibration: what is planted is measured, and the control shows none of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from vlmfair.demo.calibrate import (
    CONTROL_NOT_LEARNT,
    PLANTED_NOT_LEARNT,
    calibrate,
    calibration_table,
)
from vlmfair.demo.effects import Effect
from vlmfair.demo.planted import load_planted
from vlmfair.papers.gras.questions import load_prompts

ROOT = Path(__file__).parents[2]
TABLE = load_planted(ROOT / "resources/demo/planted.yaml")
PROMPTS = load_prompts(ROOT / "resources/prompts/gras.yaml")
# Fewer would do for the logits, but a difference of two shares of 24 answers each already has a
# deviation of 0.06, half of its tolerance.
SCENES = 30


@pytest.fixture(scope="module")
def planted() -> dict[str, Effect]:
    folder = ROOT / "resources/demo/tiny-planted"
    return {e.name: e for e in calibrate(folder, TABLE, PROMPTS, scenes=SCENES)}


@pytest.fixture(scope="module")
def control() -> dict[str, Effect]:
    folder = ROOT / "resources/demo/tiny-control"
    return {e.name: e for e in calibrate(folder, TABLE.control(), PROMPTS, scenes=SCENES)}


@pytest.mark.slow
def test_every_planted_effect_is_measured_within_its_tolerance(planted):
    # Given the effects that training reached too weakly, then no others are off.
    assert [name for name, effect in planted.items() if not effect.ok] == list(PLANTED_NOT_LEARNT)
    for name in PLANTED_NOT_LEARNT:
        assert planted[name].measured >= planted[name].planted / 2 > 0


@pytest.mark.slow
def test_the_control_shows_none_of_the_effects(control):
    # What is off in the control is the same for every group: see CONTROL_NOT_LEARNT.
    assert [name for name, effect in control.items() if not effect.ok] == list(CONTROL_NOT_LEARNT)


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
