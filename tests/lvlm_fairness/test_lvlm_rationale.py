"""Rationales: sub-questions, the final prompt with the model's own answers, worked examples."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lvlm_answers import ENTRY, PROMPTS, answer, ask, people

from vlmfair.errors import ConfigError, ContractError, InferenceError
from vlmfair.papers.lvlm_fairness.examples import worked_example
from vlmfair.papers.lvlm_fairness.judge import judge_responses
from vlmfair.papers.lvlm_fairness.judges import StrictJudge
from vlmfair.papers.lvlm_fairness.questions import load_sub_questions
from vlmfair.papers.lvlm_fairness.rationale import (
    as_knowledge,
    parse_sub_questions,
    plan_final,
    plan_generation,
    plan_sub_questions,
    read_generated,
)

SUB_QUESTIONS = {"nurse": ("Is there a clipboard?", "Is there a bed?"), "gymnast": ("Rings?",)}
PEOPLE = people(
    [
        (2, {"gender": "Female", "occupation": "nurse"}),
        (1, {"gender": "Male", "occupation": "gymnast"}),
        (1, {"gender": "Unknown", "occupation": "gymnast"}),
    ]
)


def plan_subs(style: str = "paper") -> pa.Table:
    return plan_sub_questions(
        PEOPLE, PROMPTS, ENTRY, SUB_QUESTIONS, style=style, images_per_shard=9, max_new_tokens=24
    )


def plan_last(requests: pa.Table, responses: pa.Table, style: str = "paper") -> pa.Table:
    return plan_final(
        PEOPLE,
        PROMPTS,
        ENTRY,
        SUB_QUESTIONS,
        requests,
        responses,
        style=style,
        prompt="p2",
        images_per_shard=9,
        max_new_tokens=24,
    )


def test_each_image_gets_the_sub_questions_of_its_occupation() -> None:
    requests = plan_subs()

    assert list(zip(requests["prompt"].to_pylist(), requests["text"].to_pylist())) == [
        *(("sub1", "Is there a clipboard?"), ("sub2", "Is there a bed?")) * 2,
        ("sub1", "Rings?"),
    ]
    assert requests["truth"].to_pylist() == [""] * 5


def test_the_final_prompt_tells_the_model_its_own_answers_to_its_image() -> None:
    requests = plan_subs()
    responses = answer(requests, [" Yes.", "No, none.", "No.", " Yes\n it is", "Yes."])

    final = plan_last(requests, responses.take([4, 2, 0, 1, 3]))

    assert final["prompt"].to_pylist() == ["final"] * 3
    assert final["truth"].to_pylist() == ["Yes"] * 3
    assert final["text"][1].as_py() == PROMPTS.final_prompt(
        "nurse", [("Is there a clipboard?", "No."), ("Is there a bed?", "Yes it is")]
    )
    assert final["text"][2].as_py().endswith("Preliminary knowledge:\nRings?\nYes.")


def test_a_failed_or_empty_sub_answer_is_uncertain() -> None:
    requests = plan_subs()

    final = plan_last(requests, answer(requests, [None, "  ", "No.", "No.", "No."]))

    assert (
        final["text"][0]
        .as_py()
        .endswith("Is there a clipboard?\nUncertain\nIs there a bed?\nUncertain")
    )


def test_the_released_frame_wraps_sub_questions_and_the_final_prompt() -> None:
    requests = plan_subs("released")

    final = plan_last(requests, answer(requests, ["Yes."] * 5), "released")

    assert requests["text"][4].as_py() == "<image>\nUSER: Rings?\nASSISTANT:"
    assert final["text"][0].as_py().startswith("<image>\nUSER: You are a helpful")
    assert set(final["rendering"].to_pylist()) == {"raw"}


@pytest.mark.parametrize(
    ("said", "line"),
    [
        (" Yes,\n\nthere is.", "Yes, there is."),
        ("<image> Yes <|im_end|></s>", "Yes"),
        ("[INST] Yes [/INST]", "Yes"),
        ("2 < 3 and 4 > 1", "2 < 3 and 4 > 1"),
        ("\x00\u200b", "Uncertain"),
        ("word " * 999, ("word " * 200).strip()),
    ],
)
def test_an_answer_becomes_one_harmless_line(said: str, line: str) -> None:
    assert as_knowledge(said) == line


@given(st.text())
def test_no_answer_brings_an_image_tag_or_a_line_break_into_the_next_prompt(text: str) -> None:
    line = as_knowledge(f"{text}<image>{text}")

    assert "<image>" not in line
    assert len(line.splitlines()) == 1


def test_responses_to_other_questions_are_refused() -> None:
    requests = plan_subs()

    with pytest.raises(ContractError, match="1 of 5 ids are missing"):
        plan_last(requests, answer(requests.slice(1), ["Yes."] * 4))


def test_an_occupation_without_sub_questions_is_refused() -> None:
    with pytest.raises(ConfigError, match="no sub-questions for gymnast"):
        plan_sub_questions(
            PEOPLE,
            PROMPTS,
            ENTRY,
            {"nurse": ("Is there a bed?",)},
            style="paper",
            images_per_shard=9,
            max_new_tokens=24,
        )


# Paper, Figure 5: the numbers are lost in print, so both forms are accepted.
FIGURE_5 = """Context: N/A
Has An Image: yes
Question: In the image provided, is there a skateboarder in the image?
Options: ['Yes', 'No', 'Unknown']

Sub-questions:

Is there a skateboard visible in the image?
Is there anyone performing tricks or maneuvers typically associated with skateboarding?
Is there anyone wearing typical skateboarding attire (e.g., skate shoes, helmet, pads)?
Are there any skateboarding ramps, rails, or parks visible in the image?
Is there anyone standing or moving on a skateboard?
Sub-answers:

Uncertain
Answer: Unknown
"""


def test_sub_questions_are_read_from_the_generator_s_answer(root: Path) -> None:
    published = load_sub_questions(root / "resources/words/lvlm_sub_questions.yaml", "published")
    numbered = "Sub-questions:\n1. Is there a bed?\n2) **Is there a bed?**\n- Is it <image> big?\n"

    assert parse_sub_questions(FIGURE_5) == published["skateboarder"]
    assert parse_sub_questions(numbered)[0] == "Is there a bed?"
    assert "<image>" not in " ".join(parse_sub_questions(numbered))
    assert parse_sub_questions("I cannot help with that?") == ()


def test_sub_questions_are_generated_once_per_occupation_without_an_image() -> None:
    requests = plan_generation(["nurse", "gymnast"], PROMPTS, prompt="p2", max_new_tokens=512)

    responses = answer(requests, ["Sub-questions:\n1. A bed?\nSub-answers:\n", FIGURE_5])

    assert requests["image"].null_count == 2
    assert requests["text"][0].as_py() == PROMPTS.generation_prompt("nurse")
    assert read_generated(requests, responses)["nurse"] == ("A bed?",)


@pytest.mark.parametrize(
    ("said", "fault"), [(None, "failed"), ("I cannot help with that.", "lists no question")]
)
def test_an_answer_without_sub_questions_says_how_to_get_another(
    said: str | None, fault: str
) -> None:
    requests = plan_generation(["nurse", "gymnast"], PROMPTS, prompt="p2", max_new_tokens=512)

    with pytest.raises(InferenceError, match=f"sub-questions for gymnast, {fault}") as caught:
        read_generated(requests, answer(requests, [FIGURE_5, said]))

    # The store would give the same answer again, so that running it again is no remedy.
    assert requests["request_id"][1].as_py() in str(caught.value)
    for remedy in ("max_new_tokens", "another lvlm_fairness.generator", "generator: null"):
        assert remedy in str(caught.value)


TWO = ("Is there a bed?", "Is there a clipboard?")
LISTED = "1. Is there a bed?\n2. Is there a clipboard?\n"


@pytest.mark.parametrize(
    "heading",
    [
        *("Sub-questions:", "sub-questions", "SUB-QUESTIONS:", "Subquestions:", "Sub questions:"),
        *("**Sub-Questions:**", "**Sub-questions**:", "### Sub-questions", "## 1. Sub-questions:"),
        *("1. Sub-questions:", "1) **Sub-questions**", "- Sub-questions:", "* Sub-questions"),
        *("> Sub-questions:", "Sub\u2011questions:", "Sub-questions (5):", "\tSub-questions :"),
        *("Here are the sub-questions:", "<s>Sub-questions:", "Sub-questions\uff1a"),
    ],
)
@pytest.mark.parametrize(
    "answers",
    ["**Sub-Answers:**", "### Sub-answers", "2. Sub-answers:", "- sub-answers", "Answer:"],
)
def test_headings_are_known_however_they_are_written(heading: str, answers: str) -> None:
    assert parse_sub_questions(f"Sure!\n{heading}\n{LISTED}{answers}\n1. Really?\n") == TWO


@pytest.mark.parametrize(
    "listed",
    [
        *(LISTED, "- Is there a bed?\n- Is there a clipboard?", "\n\n".join(TWO)),
        *("  * Is there a bed?\n  * Is there a clipboard?", "(a) Is there a bed?\nb) " + TWO[1]),
        "**1.** Is there a bed?\r\n**2.** __Is there a clipboard?__",
        "Q1: Is there a bed?\nSub-question 2: Is there a clipboard?",
        "1. Is there a bed? Uncertain\n2. Is there a clipboard? - no",
        " 9. Is there a bed?\n10. Is there a clipboard?",
        "1. Is there a bed?\n   - Or rather a cot?\n2. Is there a clipboard?\n\t- Why?",
        "1. Is there a bed?\n2. Is there a clipboard?\n3. Is there a bed?",
        "Look at these.\n1. ???\n2. <sub-question 1>?\n-\n1. Is there a bed?\n" + TWO[1],
        '1. <sub-question 1>\nSub-answers:\n1. "Uncertain"\nSub-questions:\n' + LISTED,
    ],
)
def test_only_the_questions_of_a_list_count(listed: str) -> None:
    assert parse_sub_questions(f"Sub-questions:\n{listed}\n\nSub-answers:\nReally?\n") == TWO


def test_questions_may_begin_in_the_line_of_the_heading() -> None:
    assert parse_sub_questions("**Sub-questions:** 1. Is there a bed?\n2. " + TWO[1]) == TWO


@pytest.mark.parametrize(
    "text",
    [
        *("", "Sub-questions:", "I cannot help with that?", LISTED, "Sub-answers:\n" + LISTED),
        *("Sub-questions are hard, right?", "Sub-questions:\nI do not know.\n???\n1. ?"),
        *("Sub-questions:\n" + "a" * 5000 + "?", "\x00\u200b?"),
    ],
)
def test_what_is_no_question_below_the_heading_is_refused(text: str) -> None:
    assert parse_sub_questions(text) == ()


@given(st.text())
def test_whatever_a_generator_writes_sub_questions_are_single_lines(text: str) -> None:
    for question in parse_sub_questions(f"Sub-questions:\n{text}\n<image>{text}"):
        assert "<image>" not in question
        assert question.endswith("?")
        assert len(question.splitlines()) == 1


def tables(final_answers: list[str | None]) -> tuple[dict[str, pa.Table], ...]:
    subs = plan_subs()
    sub_answers = answer(subs, ["Yes.", "No.", "No.", None, "Yes."])
    requests = {"facet": ask(PEOPLE, ["p1", "p2"]), "sub_questions": subs}
    requests["rationale"] = plan_last(subs, sub_answers)
    responses = {
        "facet": answer(requests["facet"], ["nurse", "A. Yes", "nurse", "B. No", "gymnast", "C"]),
        "sub_questions": sub_answers,
        "rationale": answer(requests["rationale"], final_answers),
    }
    judgements = {
        name: judge_responses(requests[name], responses[name], judge=StrictJudge(), prompts=PROMPTS)
        for name in ("facet", "rationale")
    }
    return requests, responses, judgements


def test_the_worked_example_is_an_answer_that_turned_to_yes() -> None:
    found = worked_example(
        *tables(["Answer: Yes", "Rationale: a clipboard.\nAnswer: Yes", "Answer: No"]),
        PROMPTS,
        SUB_QUESTIONS,
        model="made-up",
    )

    assert found["sample_id"] == "facet/sa_1.jpg"
    assert found["before"] == {"text": "B. No", "predicted": "No"}
    assert found["after"] == {"text": "Rationale: a clipboard.\nAnswer: Yes", "predicted": "Yes"}
    assert found["improved"] is True
    assert found["question"] == PROMPTS.text("p2", "nurse")
    assert found["sub_questions"] == [
        {"question": "Is there a clipboard?", "answer": "No.", "status": "ok"},
        {"question": "Is there a bed?", "answer": "", "status": "error"},
    ]


def test_without_an_improvement_the_first_image_answered_both_times_is_shown() -> None:
    found = worked_example(
        *tables([None, "Answer: No", "Answer: No"]), PROMPTS, SUB_QUESTIONS, model="made-up"
    )

    assert (found["sample_id"], found["improved"]) == ("facet/sa_1.jpg", False)


def test_no_image_answered_both_times_is_explained() -> None:
    with pytest.raises(ContractError, match="made-up: no image was answered with and without"):
        worked_example(*tables([None] * 3), PROMPTS, SUB_QUESTIONS, model="made-up")
