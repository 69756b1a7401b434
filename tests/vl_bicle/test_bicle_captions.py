"""Caption quality against sacreBLEU itself, and the reader of thoughts and answers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU

from vlmfair.errors import ContractError
from vlmfair.text.captions import (
    bleu_counts,
    bleu_from_counts,
    bleu_signature,
    caption_length,
    clip_scores,
    kept_references,
)
from vlmfair.text.thoughts import read_thought

VOCABULARY = ["a", "man", "woman", "rides", "the", "horse", ".", "red,", "in"]
TEXT = st.lists(st.sampled_from(VOCABULARY), max_size=9).map(" ".join)
PAIR = st.tuples(TEXT, st.lists(TEXT.filter(bool), min_size=1, max_size=7))


def by_sacrebleu(captions: list[str], references: list[list[str]]) -> float:
    most = max(map(len, references))
    # sacreBLEU wants one stream per reference; images have five to seven.
    streams = [[own[n] if n < len(own) else None for own in references] for n in range(most)]
    return float(BLEU().corpus_score(captions, streams).score)


@settings(max_examples=60, deadline=None)
@given(st.lists(PAIR, min_size=1, max_size=5))
def test_bleu_is_sacrebleu_s(pairs: list[tuple[str, list[str]]]) -> None:
    captions, references = [p[0] for p in pairs], [p[1] for p in pairs]

    counts = bleu_counts(captions, references)

    expected = by_sacrebleu(captions, references)
    assert bleu_from_counts(counts.sum(axis=0)) == pytest.approx(expected, abs=1e-9)


def test_bleu_of_several_corpora_at_once_and_of_none() -> None:
    captions = ["A man rides a horse in the park.", "The woman is walking.", "zzz"]
    references = [["A man rides a horse.", "A man in the park."], ["A woman is walking."], ["abc"]]
    counts = bleu_counts(captions, references)
    corpora = np.stack([counts[:1].sum(0), counts[:2].sum(0), counts[2], np.zeros(10)])

    scores = bleu_from_counts(corpora)

    assert scores[0] == pytest.approx(by_sacrebleu(captions[:1], references[:1]))
    assert scores[1] == pytest.approx(by_sacrebleu(captions[:2], references[:2]))
    assert scores[2] == 0.0
    assert np.isnan(scores[3])


def test_bleu_is_described_by_its_signature() -> None:
    assert bleu_signature([["a"], ["b", "c"]]).startswith(
        "nrefs:var|case:mixed|eff:no|tok:13a|smooth:exp|version:"
    )
    metric = BLEU()
    metric.corpus_score(["a"], [["a"], ["b"]])
    assert bleu_signature([["a", "b"]]) == str(metric.get_signature())


def test_references_that_are_empty_do_not_count() -> None:
    # COCO's captions: seven of an image, stray white space, or none at all.
    assert kept_references([" A man\n rides. ", "", "  \n", None, "B"]) == ["A man rides.", "B"]
    with pytest.raises(ContractError, match="'x' has no reference caption"):
        bleu_counts(["x"], [[]])


def test_length_is_in_words() -> None:
    assert [caption_length(text) for text in ("", "A man.", " a  b-c\nd ")] == [0, 2, 3]


def test_clipscore_is_100_cosines_and_never_negative() -> None:
    images = np.array([[1.0, 0.0], [1.0, 0.0], [0.6, 0.8]])
    texts = np.array([[0.6, 0.8], [-1.0, 0.0], [0.6, 0.8]])

    assert clip_scores(images, texts) == pytest.approx([60.0, 0.0, 100.0])


@pytest.mark.parametrize(
    ("text", "answer", "thought", "rule"),
    [
        ("Answer: sitting", "sitting", "", "field"),
        ("Thought: 1. Look. 2. See. Answer: on a bench", "on a bench", "1. Look. 2. See.", "field"),
        ("**Thought:** see\n\n**Answer:** Yes.", "Yes.", "see", "field"),
        ("thought : see\nANSWER : no", "no", "see", "field"),
        ("Thought: The answer: red. Answer: blue", "blue", "The answer: red.", "field"),
        ("I look. Final answer: red", "red", "I look.", "field"),
        ("Answer:\n\nred", "red", "", "field"),
        ("Answer: in the\npark", "in the park", "", "field"),
        # Models that go on after their answer with a question of their own.
        ("Answer: yes\n\nUser: Is the man old? Answer: no", "yes", "", "field"),
        ("Answer: yes USER: Is he old? ASSISTANT: Answer: no", "yes", "", "field"),
        ("Answer: yes\nQuestion: what?", "yes", "", "field"),
        ("Answer: yes<|im_end|>Answer: no", "yes", "", "field"),
        ("Answer: yes Thought: 1. hm Answer: no", "yes", "", "field"),
        ("sitting", "sitting", "", "whole_text"),
        ("Sitting.\n\nThe person sits.", "Sitting.", "", "whole_text"),
        ("Thought: 1. Look at the", "1. Look at the", "", "whole_text"),
        ("answering: no", "answering: no", "", "whole_text"),
        ("", "", "", "empty"),
        (" \n", "", "", "empty"),
        ("Thought: see Answer:", "", "see", "empty"),
        ("Answer: **", "", "", "empty"),
    ],
)
def test_thoughts_and_answers_are_told_apart(
    text: str, answer: str, thought: str, rule: str
) -> None:
    reading = read_thought(text)

    assert (reading.answer, reading.thought, reading.rule) == (answer, thought, rule)
    assert reading.formatted == (rule == "field")


@given(st.text(max_size=40))
def test_any_text_can_be_read(text: str) -> None:
    reading = read_thought(text)

    assert (reading.rule == "empty") == (reading.answer == "")
    assert "\n" not in reading.answer
