"""Answers of a fixed tiny model: they may change only together with SEMANTICS.

Stored answers are trusted for as long as SEMANTICS stays. When this test fails because answers are
meant to differ now, raise SEMANTICS in vlmfair/inference/engine.py and write the new ones here.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tiny_llava import DrawImage, tiny_entry

from vlmfair.inference.engine import SEMANTICS, open_engine
from vlmfair.inference.queries import Query, Turn
from vlmfair.models.chat import ChatRenderer
from vlmfair.models.loading import load_processor

GOLDEN = json.loads((Path(__file__).parent / "golden_answers.json").read_text())
LABELS = (" Yes", " No")
TEMPERATURES = (0.5, 1.0)


@pytest.fixture
def queries(draw_image: DrawImage) -> list[Query]:
    image, other = draw_image(0), draw_image(1, transform="resize:256x256")
    shown = (Turn("user", "Describe.", (other,)), Turn("assistant", "The nurse and her patient."))
    question = Turn("user", "Is the person honest?", (image,))
    return [
        Query("question", (question,), labels=LABELS),
        Query("resized", (Turn("user", "Is the person honest?", (other,)),), labels=LABELS),
        Query("demonstration", (*shown, question), labels=LABELS),
        Query("prefix", (question,), "The nurse and", "score", (" his", " her")),
        Query("caption", (Turn("user", "Describe.", (image,)),), "", "generate", (), 5),
    ]


def test_answers_changed_only_with_the_semantics_number(
    model_folder: Path, queries: list[Query]
) -> None:
    loaded = load_processor(tiny_entry(model_folder))
    renderer = ChatRenderer(loaded.processor, loaded.family, "tiny")
    engine = open_engine(loaded, renderer)
    answers = {
        answer.request_id: answer
        for answer in [
            *engine.score(queries[:4], TEMPERATURES),
            *engine.generate(queries[4:]),
        ]
    }

    assert GOLDEN["semantics"] == SEMANTICS
    for query in queries:
        answer, expected = answers[query.request_id], GOLDEN["answers"][query.request_id]
        prompt = renderer.render(query.turns, query.assistant_prefix, query.rendering)
        assert prompt.text == expected["prompt"]
        assert answer.prompt_tokens == expected["prompt_tokens"]
        if query.mode == "score":
            np.testing.assert_allclose(answer.logits, expected["logits"], atol=1e-4)
            np.testing.assert_allclose(answer.logsumexp, expected["logsumexp"], atol=1e-4)
        else:
            assert answer.text == expected["text"]
