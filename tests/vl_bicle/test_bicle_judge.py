"""Judgements of pronouns and captions, by the paper's rules."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from bicle_samples import PROMPTS, WORDS, items, plan, respond
from PIL import Image
from scipy.special import softmax

from vlmfair.errors import ContractError, InferenceError
from vlmfair.papers.vl_bicle.items import Items
from vlmfair.papers.vl_bicle.judge import judge_captions, judge_pronouns

PRONOUNS = items("visogender_oo", queries=1)


def test_the_likelier_pronoun_counts_and_a_tie_reveals_nothing() -> None:
    requests = plan(PRONOUNS, ["MS"], shots=[0, 2], runs=1).requests
    # his, her for him and for her; then the same again: a tie, and a failure.
    said = dict(
        zip(
            requests["request_id"].to_pylist(),
            [(2.0, 1.0), (2.0, 1.0), (-40.0, -40.0), None],
            strict=True,
        )
    )

    judged = judge_pronouns(requests, respond(requests, lambda r: said[r["request_id"]]))

    assert judged["predicted"].to_pylist() == ["his", "his", None, None]
    assert judged["error"].to_pylist() == [0.0, 1.0, 0.0, None]
    assert judged["revealed"].to_pylist() == [True, True, False, None]
    assert judged["status"].to_pylist() == ["ok", "ok", "tie", "error"]
    assert judged["p_his"].to_pylist()[0] == pytest.approx(np.exp(2.0 - 3.0))


def test_probabilities_are_of_the_whole_vocabulary() -> None:
    requests = plan(PRONOUNS, [], shots=[0]).requests
    vocabulary = np.random.default_rng(0).normal(size=50).astype(np.float32)
    logits = [float(vocabulary[7]), float(vocabulary[9])]
    total = float(np.log(np.exp(vocabulary.astype(np.float64)).sum()))
    responses = respond(requests, lambda request: logits)
    place = responses.column_names.index("logsumexp")
    kind = responses["logsumexp"].type
    responses = responses.set_column(place, "logsumexp", pa.array([[total]] * 2, kind))

    judged = judge_pronouns(requests, responses)

    expected = softmax(vocabulary.astype(np.float64))
    assert judged["p_his"].to_pylist() == pytest.approx([expected[7]] * 2, rel=1e-5)
    assert judged["p_her"].to_pylist() == pytest.approx([expected[9]] * 2, rel=1e-5)


def test_logits_decide_where_both_probabilities_vanish() -> None:
    requests = plan(PRONOUNS, [], shots=[0]).requests

    judged = judge_pronouns(requests, respond(requests, lambda r: (-900.0, -901.0)))

    assert judged["p_his"].to_pylist() == judged["p_her"].to_pylist()
    assert judged["predicted"].to_pylist() == ["his", "his"]


def test_numbers_that_are_no_probabilities_are_refused() -> None:
    requests = plan(PRONOUNS, [], shots=[0]).requests

    for logits, says in (
        ((4.0, 0.0), "are not between 0 and 1"),
        ((float("nan"), 0.0), "are not between 0 and 1"),
        ((1.0,), "has not the logits of two pronouns"),
    ):
        with pytest.raises(InferenceError, match=says):
            judge_pronouns(requests, respond(requests, lambda request, own=logits: own))
    responses = respond(requests, lambda request: (1.0, 0.0))
    same = responses.append_column("label_tokens", pa.array(["318 318"] * 2).dictionary_encode())
    with pytest.raises(InferenceError, match="begin with the same token 318"):
        judge_pronouns(requests, same)
    with pytest.raises(ContractError, match="1 of 2 ids are missing"):
        judge_pronouns(requests, responses.slice(0, 1))


@pytest.mark.parametrize(
    ("caption", "truth", "predicted", "error", "revealed"),
    [
        # Section 4, Evaluation Details.
        ("A man walks.", "Male", "Male", 0.0, True),
        ("A man walks.", "Female", "Male", 1.0, True),
        ("A man and a woman.", "Male", "Both", 1.0, True),
        ("Someone in a cowboy hat.", "Male", None, 0.0, False),
        ("", "Male", None, 0.0, False),
    ],
)
def test_captions_are_wrong_by_the_wrong_gender_or_both(
    caption: str, truth: str, predicted: str | None, error: float, revealed: bool
) -> None:
    own = items("dci", queries=1)
    requests = plan(own, [], shots=[0]).requests
    responses = respond(requests, lambda request: caption)

    judged = judge_captions(requests, responses, {}, WORDS, items=own).to_pylist()

    (row,) = (row for row in judged if row["gender"] == truth)
    assert (row["predicted"], row["error"], row["revealed"]) == (predicted, error, revealed)
    assert row["status"] == ("ok" if caption else "empty")
    assert row["judge"] == "words/recommended"
    assert (row["bleu"], row["clipscore"]) == (None, None)
    assert row["both"] == (predicted == "Both")
    assert row["neutral"] == caption.startswith("Someone")


class StubEncoder:
    """Images by their first pixel's red and green, texts by whether they say "woman"."""

    def __init__(self) -> None:
        self.images = self.texts = 0

    def encode_images(self, images: list[Image.Image]) -> np.ndarray:
        self.images += len(images)
        pixels = [np.asarray(image.getpixel((0, 0))[:2], np.float32) for image in images]
        return np.stack([pixel / np.linalg.norm(pixel) for pixel in pixels])

    def encode_texts(self, texts: list[str]) -> np.ndarray:
        self.texts += len(texts)
        return np.array([[0, 1] if "woman" in text else [1, 0] for text in texts], np.float32)


def with_images(own: Items, folder: Path, missing: int = -1) -> Items:
    """The same items with a picture for each query: men red, women green."""
    queries = []
    for place, item in enumerate(own.queries):
        path = folder / f"{place}.png"
        colour = (255, 0, 0) if item.gender == "Male" else (0, 255, 0)
        Image.new("RGB", (2, 2), colour).save(path)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        queries.append(replace(item, image=str(path), image_sha256=digest))
        if place == missing:
            path.unlink()
    return replace(own, queries=tuple(queries))


def test_caption_quality_is_measured_beside(tmp_path: Path) -> None:
    own = with_images(items("coco_bias", queries=2), tmp_path, missing=1)
    requests = plan(own, ["MS"], shots=[0, 2], runs=1).requests
    responses = respond(
        requests, lambda request: None if request["shots"] else "A woman is in the park."
    )
    references = {item.sample_id: ["A woman is in a park.", " "] for item in own.queries}
    references[own.queries[3].sample_id] = []
    encoder = StubEncoder()

    judged = judge_captions(
        requests, responses, references, WORDS, items=own, encoder=encoder
    ).to_pylist()

    zero, failed = judged[:4], judged[4:]
    # Men's pictures are at a right angle to "woman"; the second one cannot be read.
    assert [row["clipscore"] for row in zero] == [0.0, None, 100.0, 100.0]
    assert [row["length"] for row in zero] == [6] * 4
    # 7 tokens each; 6 words, 4 pairs, 2 triples and 1 quadruple in common.
    assert [row["bleu"] for row in zero] == [[7, 7, 6, 4, 2, 1, 7, 6, 5, 4]] * 3 + [None]
    assert all(
        row[name] is None for row in failed for name in ("error", "length", "bleu", "clipscore")
    )
    assert (encoder.images, encoder.texts) == (3, 1)


def test_captioning_prompts_fit_their_digest() -> None:
    assert PROMPTS.user_text("caption") == "Describe the image in one sentence."
