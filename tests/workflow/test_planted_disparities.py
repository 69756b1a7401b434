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
    skin_label,
    visible_gender,
)
from vlmfair.demo.questions import final_question, sub_question_truths
from vlmfair.demo.raw_data import SEED, scenes_of
from vlmfair.demo.scenes import Scene

pytestmark = pytest.mark.workflow

MODELS = ("tiny-planted", "tiny-control")
# Of the planted answers the small models give at least 95 in 100 (docs/demo.md, labels). In the
# small run a gender has 39 images, of which three may differ, and a race 13, of which two may.
ANSWERS = 0.95
TOLERANCE = 0.08
RACE_TOLERANCE = 0.17
# A gender has 33 faces, of which five may differ: if each differs with a chance of 0.05, six or
# more do in less than 1 of 100 draws of faces.
GENDER_TOLERANCE = 0.16

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


@pytest.mark.parametrize("model", MODELS)
def test_gender_of_faces_is_recalled_alike_by_both_models(finished, metrics, model):
    """Nothing is planted in the label of gender: who shows one is named, in either model."""
    people = people_of(finished, "utkface")
    assert {visible_gender(scene.subject) for scene in people["scene"]} == {"male", "female"}
    keys = {"experiment": "utkface", "prompt": "gender", "attribute": "gender", "item": "all"}

    found = measured(metrics, model, "recall", **keys)
    gap = measured(metrics, model, "disparity", **keys)

    assert set(found.index) == {"Male", "Female"}
    assert (1 - found).abs().max() <= GENDER_TOLERANCE
    assert (1 - found).abs().mean() <= TOLERANCE
    assert abs(gap["Male-Female"]) <= GENDER_TOLERANCE


def planted_gap(right: pd.Series, groups: pd.Series, first: str, second: str) -> float:
    shares = right.groupby(groups).mean()
    return float(shares[first] - shares[second])


@pytest.mark.parametrize("model", MODELS)
def test_race_disparities_are_the_planted_ones_and_large_enough_to_be_seen(
    finished, metrics, planted, model
):
    people = people_of(finished, "utkface")
    right = expected(
        people, lambda scene, race, table: race_label(scene, table) == race, "race", planted[model]
    )
    keys = {"experiment": "utkface", "prompt": "race", "attribute": "race", "item": "all"}

    found = measured(metrics, model, "disparity", **keys)

    for first, second in (("asian", "indian"), ("white", "black")):
        wanted = planted_gap(right, people["race"], first, second)
        assert abs(found[f"{first}-{second}"] - wanted) <= RACE_TOLERANCE
        if model == "tiny-control":
            assert wanted == 0
    if model == "tiny-planted":
        # Else a model without any disparity would pass.
        assert planted_gap(right, people["race"], "asian", "indian") > 2 * RACE_TOLERANCE


def test_the_planted_disparity_of_skin_tones_is_large_enough_to_be_seen(finished, planted):
    people = people_of(finished, "facet")
    tones = people["scene"].map(lambda scene: skin_label(scene.subject))

    for prompt, right in FACET.items():
        gaps = {
            model: planted_gap(
                expected(people, right, "occupation", planted[model]), tones, "light", "dark"
            )
            for model in MODELS
        }
        assert gaps["tiny-planted"] > 2 * TOLERANCE, prompt
        assert gaps["tiny-control"] == 0, prompt


def after_rationale(scene: Scene, truth: str, table: PlantedTable) -> bool:
    """The final answer that follows from right answers to the sub-questions."""
    answers = sub_question_truths(scene, truth)
    choices = final_question(scene, truth, "p2", answers).choices
    return max(choices, key=choices.__getitem__).strip() == "Yes"


@pytest.mark.parametrize("model", MODELS)
def test_a_rationale_turns_the_planted_wrong_answers(finished, metrics, planted, model):
    people = people_of(finished, "facet")
    wanted = {
        ("facet", "p2"): expected(people, FACET["p2"], "occupation", planted[model]),
        ("rationale", "final"): expected(people, after_rationale, "occupation", planted[model]),
    }
    # The control has nothing to turn: it is right before and after.
    before, after = (right.mean() for right in wanted.values())
    assert after == 1
    assert (before < 1 - 2 * TOLERANCE) if model == "tiny-planted" else (before == 1)

    for (experiment, prompt), right in wanted.items():
        keys = {"experiment": experiment, "prompt": prompt, "item": "all"}
        of_all = measured(metrics, model, "recall", attribute="all", group="all", **keys)["all"]
        assert abs(of_all - right.mean()) <= 1 - ANSWERS
        by_gender = measured(metrics, model, "recall", attribute="gender", **keys)
        for gender, share in right.groupby(people["gender"]).mean().items():
            assert abs(by_gender[gender] - share) <= TOLERANCE
