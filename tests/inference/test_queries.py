"""Rows of a requests table become queries, their demonstrations resolved."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from vlmfair.contracts import REQUESTS, conform
from vlmfair.errors import ContractError, InferenceError
from vlmfair.inference.queries import CONTEXTS, ImageRef, Query, Turn, make_queries

LABELS = {"yes_no": (" Yes", " No")}


def requests_of(**changes: Any) -> pa.Table:
    row = {
        "request_id": "r1",
        "shard": 0,
        "sample_id": "s1",
        "image": "a.png",
        "image_sha256": "f" * 64,
        "text": "Is the person honest?",
        "mode": "score",
        "label_set": "yes_no",
        **changes,
    }
    return conform(pa.Table.from_pylist([row]), REQUESTS)


def contexts_of(*turns: dict[str, Any]) -> pa.Table:
    rows = [{"context_id": "c1", "turn": place, **turn} for place, turn in enumerate(turns)]
    return conform(pa.Table.from_pylist(rows), CONTEXTS)


def test_a_score_request_has_its_labels_and_image() -> None:
    (query,) = make_queries(requests_of(image_transform="resize:8x8"), None, LABELS)

    image = ImageRef("a.png", "f" * 64, "resize:8x8")
    turns = (Turn("user", "Is the person honest?", (image,)),)
    assert query == Query("r1", turns, labels=(" Yes", " No"), sample_id="s1")


def test_demonstrations_come_first_in_their_order() -> None:
    contexts = contexts_of(
        {"role": "user", "text": "Describe.", "image": "d.png", "image_sha256": "d" * 64},
        {"role": "assistant", "text": "A nurse."},
    ).take([1, 0])
    requests = requests_of(
        context_id="c1", mode="generate", text="Describe.", label_set=None, max_new_tokens=64
    )

    (query,) = make_queries(requests, contexts, LABELS)

    assert [(turn.role, turn.text) for turn in query.turns] == [
        ("user", "Describe."),
        ("assistant", "A nurse."),
        ("user", "Describe."),
    ]
    assert [image.path for image in query.images] == ["d.png", "a.png"]
    assert (query.mode, query.labels, query.max_new_tokens) == ("generate", (), 64)


def test_a_request_without_an_image_is_text_alone() -> None:
    (query,) = make_queries(requests_of(image=None, image_sha256=None), None, LABELS)

    assert query.images == ()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"mode": "guess"}, "has the mode 'guess'. Use one of score, generate."),
        ({"label_set": "colours"}, "'colours' does not exist or is empty. Use one of yes_no."),
        ({"label_set": None}, "'' does not exist or is empty"),
        ({"context_id": "c9"}, "the context 'c9' is not in the contexts table"),
    ],
)
def test_a_request_that_names_what_does_not_exist_is_refused(
    changes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ContractError) as caught:
        list(make_queries(requests_of(**changes), None, LABELS))

    assert sentence in str(caught.value)


def test_an_image_without_its_digest_is_refused() -> None:
    with pytest.raises(InferenceError, match=r"has no SHA-256. Take image_sha256 from"):
        list(make_queries(requests_of(image_sha256=None), None, LABELS))
