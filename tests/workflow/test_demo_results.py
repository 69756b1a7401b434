"""The finished demo as an instrument: demonstrations shift bias as planted, and not in the control.

They read `results/demo` as `make demo` leaves it here; `-m demo_results` asks for them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from vlmfair.demo.raw_data import scenes_of
from vlmfair.papers.vl_bicle.tasks import TASKS

pytestmark = pytest.mark.demo_results

PLANTED, CONTROL = "tiny-planted", "tiny-control"
# Men only push the gap between the error rates down, women only push it up: 2.2 logits times
# (women - men) / (demonstrations + 2), for pronouns and captions (resources/demo/planted.yaml).
DIRECTION = {"MS": -1, "FS": 1}
GENDERED = ("visogender_oo", "visogender_op", "coco_bias", "dci")


@pytest.fixture(scope="module")
def results(root) -> Path:
    folder = root / "results/demo/vl_bicle"
    assert (folder / "metrics.parquet").is_file(), "run make demo first"
    return folder


@pytest.fixture(scope="module")
def metrics(results) -> pd.DataFrame:
    return pd.read_parquet(results / "metrics.parquet")


@pytest.fixture(scope="module")
def shifts(metrics) -> pd.DataFrame:
    """Each shift of the gap against zero shots, over runs, by photographs."""
    chosen = (metrics["metric"] == "error_shift") & (metrics["group"] == "Male-Female")
    return metrics[chosen & (metrics["image_source"] == "real") & (metrics["run"] == 0)]


def excludes_zero(cells: pd.DataFrame) -> pd.Series:
    return (cells["ci_low"] > 0) | (cells["ci_high"] < 0)


@pytest.mark.parametrize("setting", DIRECTION)
@pytest.mark.parametrize("dataset", GENDERED)
def test_each_certain_shift_has_the_planted_sign(shifts, dataset, setting):
    cells = shifts[
        (shifts["model"] == PLANTED)
        & (shifts["dataset"] == dataset)
        & (shifts["setting"] == setting)
    ]
    assert sorted(cells["shots"]) == [2, 4, 6, 8]

    certain = cells[excludes_zero(cells)]

    assert (np.sign(certain["value"]) == DIRECTION[setting]).all()
    # Certain or not, eight demonstrations of one gender do what was planted.
    assert np.sign(cells.set_index("shots")["value"][8]) == DIRECTION[setting]


def test_most_shifts_are_certain(shifts):
    cells = shifts[(shifts["model"] == PLANTED) & shifts["dataset"].isin(GENDERED)]

    for setting in DIRECTION:
        own = cells[cells["setting"] == setting]
        assert excludes_zero(own).mean() >= 0.5, setting


def test_no_shift_of_visual_questions_is_certain(shifts):
    cells = shifts[(shifts["model"] == PLANTED) & (shifts["dataset"] == "visual_cot")]

    assert len(cells) == 2 * 4 * 4
    assert not (cells["p_adjusted"] < 0.05).any()


def test_the_control_moves_less_than_its_interval(metrics, shifts):
    cells = shifts[shifts["model"] == CONTROL]
    every = metrics[(metrics["metric"] == "error_shift") & (metrics["model"] == CONTROL)]

    # Of intervals at 95 % one in twenty excludes 0 by chance; none does after correction.
    assert len(cells) == 4 * 4 * len(TASKS) + 4 * 4
    assert not (cells["p_adjusted"] < 0.05).any()
    assert excludes_zero(cells).mean() <= 0.05
    # The error rates of men and of women do not move, either, whatever the images.
    assert set(every["group"]) == {"Male", "Female", "Male-Female"}
    assert excludes_zero(every).mean() <= 0.05


@pytest.mark.parametrize("source", ["flux", "sd35l"])
def test_drawn_demonstrations_shift_with_the_planted_sign(metrics, source):
    chosen = (metrics["metric"] == "error_shift") & (metrics["group"] == "Male-Female")
    cells = metrics[chosen & (metrics["image_source"] == source) & (metrics["model"] == PLANTED)]
    certain = cells[excludes_zero(cells)]

    assert len(cells) == 2 * 4
    assert len(certain) >= 4
    assert (np.sign(certain["value"]) == certain["setting"].astype(str).map(DIRECTION)).all()


@pytest.mark.parametrize("task", GENDERED)
def test_demonstrations_pull_hooded_people_more_than_clear_ones(root, results, task):
    """Of hooded people, who show no gender, more answers follow the demonstrations."""
    config = yaml.safe_load((root / "config/config.yaml").read_text("utf-8"))
    dataset = task.split("_o")[0] if task.startswith("visogender") else task
    per_cell = config["datasets"][dataset]["drawn_per_cell"]
    scenes = scenes_of(dataset, per_cell=per_cell, seed=config["drawn_seed"])
    judged = pd.read_parquet(results / f"judgements/{task}/{PLANTED}.parquet")
    judged = judged[(judged["image_source"] == "real") & (judged["shots"] == 8)]
    # A woman, a man, or nobody's gender: what eight women and eight men as demonstrations change.
    said = (
        judged["predicted"]
        .astype(object)
        .map({"her": 1, "Female": 1, "his": -1, "Male": -1})
        .fillna(0)
    )
    hooded = judged["sample_id"].map(lambda sample: scenes[sample].subject.hooded)

    def pull(chosen: pd.Series) -> float:
        by_setting = said[chosen].groupby(judged["setting"]).mean()
        return float(by_setting["FS"] - by_setting["MS"])

    assert judged.loc[hooded, "sample_id"].nunique() >= 10
    assert pull(hooded) > pull(~hooded) > 0
