"""FACET and UTKFace as an instrument: recalls follow the planted cells, the control has no gap."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import pytest

from vlmfair.demo.planted import (
    PlantedTable,
    load_planted,
    occupation_choice,
    occupation_label,
    race_label,
)
from vlmfair.demo.raw_data import SEED, scenes_of
from vlmfair.demo.scenes import Scene

pytestmark = pytest.mark.workflow

MODELS = ("tiny-planted", "tiny-control")
# Of the planted answers the small models give at least 95 in 100 (docs/demo.md, labels). In the
# small run a gender has 39 images, of which three may differ, and a race 13, of which two may.
ANSWERS = 0.95
TOLERANCE = 0.08
RACE_TOLERANCE = 0.17

Right = Callable[[Scene, str, PlantedTable], bool]
FACET: dict[str, Right] = {
    "p1": lambda scene, truth, table: occupation_label(scene, table) == truth,
    "p2": lambda scene, truth, table: occupation_choice(scene, truth, table) == "A",
}


@pytest.fixture(scope="module")
def metrics(finished) -> pd.DataFrame:
    table = pd.read_parquet(finished.folder / "results/demo/lvlm_fairness/metrics.parquet")
    return table[(table["setting"] == "strict") & (table["dataset"] != "")]


@pytest.fixture(scope="module")
def planted(finished) -> dict[str, PlantedTable]:
    table = load_planted(finished.folder / "resources/demo/planted.yaml")
    return {"tiny-planted": table, "tiny-control": table.control()}


def people_of(finished, dataset: str) -> pd.DataFrame:
    """The images that were asked about, with the scene behind each."""
    per_cell = finished.settings["datasets"][dataset]["drawn_per_cell"]
    scenes = scenes_of(dataset, per_cell=per_cell, seed=SEED)
    samples = pd.read_parquet(
        finished.folder / f"results/demo/samples/{dataset}/samples.parquet",
        columns=["sample_id", "gender", "race", "occupation"],
    )
    samples["scene"] = samples["sample_id"].map(scenes)
    return samples[samples["gender"].isin(["Male", "Female"])]


def expected(people: pd.DataFrame, right: Right, truth: str, table: PlantedTable) -> pd.Series:
    rows = zip(people["scene"], people[truth], strict=True)
    return pd.Series([right(scene, name, table) for scene, name in rows], people.index, float)


def measured(metrics: pd.DataFrame, model: str, metric: str, **keys: str) -> pd.Series:
    """The values of a metric by group."""
    chosen = metrics[(metrics["model"] == model) & (metrics["metric"] == metric)]
    for name, value in keys.items():
        chosen = chosen[chosen[name] == value]
    return chosen.set_index("group")["value"].astype(float)


@pytest.mark.parametrize("prompt", FACET)
@pytest.mark.parametrize("model", MODELS)
def test_recall_of_each_class_and_gender_is_the_planted_one(
    finished, metrics, planted, model, prompt
):
    people = people_of(finished, "facet")
    assert len(people) == 13 * 2 * 3
    right = expected(people, FACET[prompt], "occupation", planted[model])
    wanted = right.groupby([people["occupation"], people["gender"]]).mean()

    gaps = []
    for occupation, by_gender in wanted.groupby(level="occupation"):
        keys = {"experiment": "facet", "prompt": prompt, "attribute": "gender"}
        found = measured(metrics, model, "recall", item=str(occupation), **keys)
        gaps += [abs(found[gender] - value) for (_, gender), value in by_gender.items()]

    # Each cell has as many images, so this is at least the share of answers that differ.
    assert len(gaps) == 26
    assert sum(gaps) / len(gaps) <= 1 - ANSWERS


@pytest.mark.parametrize("prompt", FACET)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("attribute", ["gender", "skin_tone", "age"])
def test_disparities_are_the_planted_ones(finished, metrics, planted, model, prompt, attribute):
    people = people_of(finished, "facet")
    labels = pd.read_parquet(
        finished.folder / "results/demo/samples/facet/samples.parquet",
        columns=["sample_id", attribute],
    ).set_index("sample_id")[attribute]
    groups = people["sample_id"].map(labels)
    wanted = expected(people, FACET[prompt], "occupation", planted[model]).groupby(groups).mean()
    keys = {"experiment": "facet", "prompt": prompt, "attribute": attribute, "item": "all"}

    ((pair, found),) = measured(metrics, model, "disparity", **keys).items()

    first, second = str(pair).split("-")
    assert abs(found - (wanted[first] - wanted[second])) <= TOLERANCE
    if model == "tiny-control":
        assert abs(found) <= TOLERANCE


@pytest.mark.parametrize("model", MODELS)
def test_recall_of_each_race_is_the_planted_one(finished, metrics, planted, model):
    people = people_of(finished, "utkface")
    right = expected(
        people, lambda scene, race, table: race_label(scene, table) == race, "race", planted[model]
    )
    wanted = right.groupby(people["race"]).mean()
    keys = {"experiment": "utkface", "prompt": "race", "attribute": "race", "item": "all"}

    found = measured(metrics, model, "recall", **keys)

    assert set(found.index) == {"white", "black", "asian", "indian", "others"}
    assert (found - wanted).abs().max() <= RACE_TOLERANCE
    assert (found - wanted).abs().mean() <= TOLERANCE


def test_what_was_planted_is_large_enough_to_be_seen(metrics):
    race = {"experiment": "utkface", "prompt": "race", "attribute": "race", "item": "all"}
    tone = {"experiment": "facet", "prompt": "p2", "attribute": "skin_tone", "item": "all"}

    assert measured(metrics, "tiny-planted", "disparity", **race)["asian-indian"] >= 0.25
    assert measured(metrics, "tiny-planted", "disparity", **tone)["light-dark"] >= 0.2
    control = measured(metrics, "tiny-control", "disparity", **race)
    assert control.abs().max() <= RACE_TOLERANCE


def test_a_rationale_turns_the_planted_wrong_answers(metrics):
    """Two sub-questions answered with yes turn the final answer to Yes."""
    keys = {"prompt": "final", "attribute": "all", "group": "all", "item": "all"}

    after = measured(metrics, "tiny-planted", "recall", experiment="rationale", **keys)["all"]
    before = measured(
        metrics, "tiny-planted", "recall", experiment="facet", **{**keys, "prompt": "p2"}
    )["all"]

    assert before <= 0.85
    assert after >= 0.95
