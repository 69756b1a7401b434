"""Requests about FACET and UTKFace: who is asked what, and what would be right."""

from __future__ import annotations

import pyarrow as pa
import pytest
from lvlm_answers import ENTRY, PROMPTS, ask, people, person

from vlmfair.contracts import SAMPLES, conform
from vlmfair.errors import ConfigError, ContractError
from vlmfair.papers.lvlm_fairness.plan import plan_facet, plan_utkface, truth_of

PEOPLE = people(
    [
        (2, {"gender": "Male", "occupation": "gymnast"}),
        (1, {"gender": "Unknown", "occupation": "gymnast"}),
        (1, {"gender": "Female", "occupation": "waiter"}),
        (1, {"gender": "Female", "occupation": "nurse"}),
    ]
)


def test_people_of_known_gender_and_evaluated_occupation_are_asked_each_prompt() -> None:
    requests = ask(PEOPLE, ["p1", "p2", "p3"])

    assert [name.split("_")[1] for name in requests["sample_id"].to_pylist()] == (
        ["0.jpg"] * 3 + ["1.jpg"] * 3 + ["4.jpg"] * 3
    )
    assert requests["prompt"].to_pylist() == ["p1", "p2", "p3"] * 3
    assert requests["truth"].to_pylist() == [
        *("gymnast", "Yes", "Yes", "gymnast", "Yes", "Yes", "nurse", "Yes", "Yes")
    ]
    assert requests["text"][7].as_py() == PROMPTS.text("p2", "nurse")
    assert set(requests["mode"].to_pylist()) == {"generate"}
    assert set(requests["max_new_tokens"].to_pylist()) == {24}


def test_questions_on_one_image_stay_together_in_a_shard() -> None:
    requests = plan_facet(
        PEOPLE,
        PROMPTS,
        ENTRY,
        style="paper",
        prompt_ids=["p1", "p2"],
        images_per_shard=2,
        max_new_tokens=24,
    )

    assert requests["shard"].to_pylist() == [0, 0, 0, 0, 1, 1]


def test_request_ids_follow_what_is_asked_and_nothing_else() -> None:
    def ids(samples: pa.Table, **changes: object) -> list[str]:
        arguments = {
            "style": "paper",
            "prompt_ids": ["p1", "p2"],
            "images_per_shard": 9,
            "max_new_tokens": 24,
        }
        planned = plan_facet(samples, PROMPTS, ENTRY, **{**arguments, **changes})  # type: ignore[arg-type]
        return planned["request_id"].to_pylist()

    usual = ids(PEOPLE)

    assert len(set(usual)) == 6
    assert set(ids(PEOPLE.take([4, 1, 0]))) == set(usual)
    assert ids(PEOPLE, images_per_shard=1) == usual
    assert not set(ids(PEOPLE, max_new_tokens=25)) & set(usual)
    assert not set(ids(PEOPLE, style="released")) & set(usual)


def test_utkface_is_asked_for_the_attributes_that_are_known() -> None:
    faces = people(
        [
            (1, {"gender": "Female", "race": "others", "age": "65"}),
            (1, {"gender": "Male", "race": "", "age": "24"}),
        ],
        "utkface",
    )

    requests = plan_utkface(
        faces,
        PROMPTS,
        ENTRY,
        style="paper",
        prompt_ids=["gender", "race", "age"],
        images_per_shard=9,
        max_new_tokens=8,
    )

    asked = list(zip(requests["prompt"].to_pylist(), requests["truth"].to_pylist(), strict=True))
    assert asked == [
        *(("gender", "female"), ("race", "others"), ("age", "middle")),
        *(("gender", "male"), ("age", "young")),
    ]
    assert set(requests["occupation"].to_pylist()) == {""}


@pytest.mark.parametrize(
    ("years", "group"),
    [
        *(("0", "young"), ("24", "young"), ("25", "middle"), ("65", "middle"), ("66", "old")),
        *(("old", "old"), ("unknown", ""), ("-3", ""), ("", "")),
    ],
)
def test_years_become_the_paper_s_three_ages(years: str, group: str) -> None:
    # Appendix A.4: under 25, 25-65, over 65.
    assert truth_of(person(1, age=years), "age", PROMPTS) == group


@pytest.mark.parametrize("changes", [{"gender": "Unknown"}, {"occupation": "waiter"}])
def test_nobody_to_ask_is_explained(changes: dict[str, str]) -> None:
    nobody = conform(pa.Table.from_pylist([person(1, **changes)]), SAMPLES)

    with pytest.raises(ContractError, match="facet has nothing to ask"):
        ask(nobody, ["p1"])


def test_numbers_that_cannot_be_are_refused() -> None:
    arguments = {"style": "paper", "prompt_ids": ["p1"]}

    with pytest.raises(ConfigError, match="max_new_tokens is 0"):
        plan_facet(PEOPLE, PROMPTS, ENTRY, images_per_shard=1, max_new_tokens=0, **arguments)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="images_per_shard is 0"):
        plan_facet(PEOPLE, PROMPTS, ENTRY, images_per_shard=0, max_new_tokens=1, **arguments)  # type: ignore[arg-type]
