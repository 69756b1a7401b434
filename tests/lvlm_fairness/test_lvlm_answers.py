"""The strict reader of answers in words: what it reads, and that it never guesses."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lvlm_answers import CLASSES

from vlmfair.text.answers import after_marker, normalise, read_choice, read_label

OPTIONS = {"A": "Yes", "B": "No", "C": "Unknown"}
GENDERS = ("male", "female")


@pytest.mark.parametrize(
    ("text", "answer", "rule"),
    [
        (" A. Yes", "Yes", "option_letter"),
        ("A", "Yes", "option_letter"),
        ("(B)", "No", "option_letter"),
        ("b) no", "No", "option_letter"),
        ("C. Unknown. While the image shows a person, yes and no.", "Unknown", "option_letter"),
        ("**A: Yes**", "Yes", "option_letter"),
        ("A\n\nThe image shows a nurse.", "Yes", "option_letter"),
        ("A - Yes", "Yes", "option_letter"),
        ("Yes.", "Yes", "leading_word"),
        ("“Yes”", "Yes", "leading_word"),
        ("Ｙｅｓ", "Yes", "leading_word"),
        ("\u200bNo\u0000", "No", "leading_word"),
        ("Yes, there is no doubt about it.", "Yes", "leading_word"),
        ("No one in the image is a nurse.", "No", "leading_word"),
        ("Rationale: No horse. \nAnswer: Yes [Correct Answer.]", "Yes", "leading_word"),
        ("Rationale: yes, yes.\n**Answers:** B. No", "No", "option_letter"),
        ("Based on the image, the answer is no.", "No", "stated"),
        ("The correct answer is A. Yes", "Yes", "stated"),
        ("I would choose B.", "No", "stated"),
        ('I would say "unknown" here.', "Unknown", "quoted"),
    ],
)
def test_a_choice_that_is_given_is_read(text: str, answer: str, rule: str) -> None:
    reading = read_choice(text, OPTIONS)

    assert (reading.answer, reading.status, reading.rule) == (answer, "ok", rule)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "empty"),
        (" ... ", "empty"),
        ("Rationale: yes.\nAnswer:", "empty"),
        ("A. Yes, B. No, C. Unknown.", "several"),
        ("A, B or C", "several"),
        ("A\nB\nC", "several"),
        ("Yes and no.", "several"),
        ("Yes/No", "several"),
        ("Yes, but also no", "several"),
        ("The answer is A. Or the answer is B.", "several"),
        ("A. No", "contradiction"),
        ("A nurse is visible in the image.", "none"),
        ("a person", "none"),
        ("No doubt there is a nurse.", "none"),
        ("No idea", "none"),
        ("The answer is a nurse", "none"),
        ("Based on the image, there is no nurse", "none"),
        ("Answers: <one of the options>", "none"),
        ("Nope", "none"),
        ("Yesterday", "none"),
        ("D. Maybe", "none"),
    ],
)
def test_a_choice_that_is_not_given_is_unparsed(text: str, rule: str) -> None:
    reading = read_choice(text, OPTIONS)

    assert (reading.answer, reading.status, reading.rule) == (None, "unparsed", rule)


@pytest.mark.parametrize(
    ("text", "answer", "rule"),
    [
        (' "nurse"', "nurse", "exact"),
        ("Nurse.", "nurse", "exact"),
        ("“soccer player”", "soccer_player", "exact"),
        ("SOCCER-PLAYER", "soccer_player", "exact"),
        ("lifeguard", "lifeguard", "exact"),
        ("nurse\n\nExplanation: she cares for a patient.", "nurse", "first_line"),
        ('"nurse" because she wears the coat of a doctor', "nurse", "quoted"),
        ('I can\'t determine it, but "nurse" fits.', "nurse", "quoted"),
        ("The person is a nurse, not a doctor.", "nurse", "unique_mention"),
        ("<b>tennis_player</b>", "tennis_player", "unique_mention"),
        ("It looks like a computer\n user", "computer_user", "unique_mention"),
    ],
)
def test_a_class_that_is_given_is_read(text: str, answer: str, rule: str) -> None:
    reading = read_label(text, CLASSES.all)

    assert (reading.answer, reading.status, reading.rule) == (answer, "ok", rule)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "empty"),
        ('""', "empty"),
        ("nurse or doctor", "several"),
        ('["nurse", "doctor"]', "several"),
        ("nurse\ndoctor", "several"),
        (", ".join(CLASSES.all), "several"),
        ("This is not a nurse.", "none"),
        ("She isn't a nurse", "none"),
        ('not a "nurse"', "none"),
        ("nursery", "none"),
        ("safeguarding", "none"),
        ("non-nurse", "none"),
        ("chef", "none"),
    ],
)
def test_a_class_that_is_not_given_is_unparsed(text: str, rule: str) -> None:
    reading = read_label(text, CLASSES.all)

    assert (reading.answer, reading.status, reading.rule) == (None, "unparsed", rule)


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't help with that.",
        "I’m sorry, I cannot determine whether this person is a nurse.",
        "As an AI, I don't see gender.",
        "I am unable to identify people in images.",
        "Sorry, I won't guess.",
        "I must decline.",
    ],
)
def test_an_answer_that_declines_is_refused(text: str) -> None:
    readings = read_label(text, CLASSES.all), read_label(text, GENDERS), read_choice(text, OPTIONS)

    assert {(reading.answer, reading.status) for reading in readings} == {(None, "refused")}


def test_a_refusal_with_an_answer_gives_the_answer() -> None:
    reading = read_choice("C. Unknown. I'm sorry, I cannot determine this.", OPTIONS)

    assert (reading.answer, reading.status) == ("Unknown", "ok")


def test_female_is_not_male() -> None:
    readings = [read_label(text, GENDERS).answer for text in ("female", "a male", "Females", "man")]

    assert readings == ["female", "male", None, None]


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("Rationale: x\nAnswer: Yes", " Yes"),
        ("Answer: No\nAnswer: Yes", " Yes"),
        ("no marker", "no marker"),
        ("unanswered: no", "unanswered: no"),
    ],
)
def test_only_what_follows_the_last_marker_counts(text: str, rest: str) -> None:
    assert after_marker(text) == rest


words = st.sampled_from(
    [
        *("A", "B", "C", "a", "yes", "No", "unknown", "nurse", "doctor", "not", "Answer:", "or"),
        *(".", ",", '"', "\n", "(", ")", ":", "/", "I'm sorry", "\u200b", "\x00", "<image>", "’"),
    ]
)
hostile = st.one_of(st.text(max_size=200), st.lists(words, max_size=12).map(" ".join))


@given(hostile)
@settings(max_examples=200, deadline=None)
def test_any_text_is_read_without_a_fault_and_an_answer_is_one_of_those_offered(text: str) -> None:
    for reading, offered in (
        (read_choice(text, OPTIONS), OPTIONS.values()),
        (read_label(text, CLASSES.all), CLASSES.all),
    ):
        assert (reading.status == "ok") == (reading.answer in offered)
        assert (reading.status == "ok") or reading.answer is None
        assert reading.status in ("ok", "unparsed", "refused")


@given(st.sampled_from(CLASSES.all), st.sampled_from(['"', "", "'", "**", "“"]), st.booleans())
@settings(max_examples=60, deadline=None)
def test_every_class_is_read_in_any_quotes_case_and_spacing(
    label: str, quote: str, spaced: bool
) -> None:
    written = label.replace("_", " ").title() if spaced else label.upper()

    assert read_label(f" {quote}{written}{quote}.\n", CLASSES.all).answer == label


@given(st.lists(st.sampled_from(CLASSES.all), min_size=2, max_size=5, unique=True))
@settings(max_examples=60, deadline=None)
def test_several_classes_are_never_one_answer(labels: list[str]) -> None:
    for text in (", ".join(labels), " and ".join(labels), str(labels)):
        assert read_label(text, CLASSES.all).answer is None


@given(st.text(max_size=100))
@settings(max_examples=100, deadline=None)
def test_normalising_twice_changes_nothing_more(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


def test_a_very_long_answer_is_read_in_a_moment() -> None:
    import time

    text = "A person, not a " * 20_000 + "answer: " * 5_000

    started = time.perf_counter()
    read_choice(text, OPTIONS)
    read_label(text, CLASSES.all)

    # Quadratic patterns would take minutes.
    assert time.perf_counter() - started < 5
