"""Label tokens are taken where the label continues the prompt."""

from __future__ import annotations

import pytest
from tiny_llava import train_tokenizer

from vlmfair.errors import ModelError
from vlmfair.models.labels import LabelTokens, check_stated_id, find_label_tokens, shared_labels

TOKENIZER = train_tokenizer()


def find(prompt: str, *labels: str) -> LabelTokens:
    return find_label_tokens(
        prompt,
        labels,
        lambda text: TOKENIZER(text)["input_ids"],
        lambda text: TOKENIZER(text, add_special_tokens=False)["input_ids"],
        "tiny",
    )


def piece(token: int) -> str:
    return str(TOKENIZER.decode([token]))


def test_a_label_is_the_token_behind_the_prompt() -> None:
    found = find("Question: Is the person honest? ASSISTANT:", " Yes", " No", "Yes")

    assert [piece(token) for token in found.ids] == [" Yes", " No", "Yes"]
    assert found.merged == (False, False, False)


def test_a_label_of_several_tokens_counts_by_its_first_one() -> None:
    found = find("The nurse and", " his patient", " her patient")

    assert [piece(token) for token in found.ids] == [" his", " her"]


def test_a_label_that_merges_with_the_prompt_is_tokenised_alone() -> None:
    # "person" is one token of this tokenizer, so that "pers" + "on" is never asked as such.
    assert len(TOKENIZER(" person", add_special_tokens=False)["input_ids"]) == 1

    found = find("Is the pers", "on")

    assert found.merged == (True,)
    assert found.ids[0] == TOKENIZER("on", add_special_tokens=False)["input_ids"][0]


@pytest.mark.parametrize("label", ["", "  "])
def test_an_empty_label_is_refused(label: str) -> None:
    with pytest.raises(ModelError, match=r"is empty, so that no token stands for it. Write"):
        find("ASSISTANT:", " Yes", label)


def test_labels_that_share_their_first_token_are_found() -> None:
    labels = (" his patient", " her", " his nurse")

    assert shared_labels(labels, find("The nurse and", *labels).ids) == [
        [" his patient", " his nurse"]
    ]


def test_another_token_than_the_papers_is_refused_with_both() -> None:
    yes, no = find("ASSISTANT:", " Yes", " No").ids
    check_stated_id("tiny", " Yes", yes, yes, piece)

    with pytest.raises(ModelError, match=rf"token {yes} \(' Yes'\).* states {no} \(' No'\)"):
        check_stated_id("tiny", " Yes", no, yes, piece)
