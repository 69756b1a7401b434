"""Judges of the same responses: the authors' regular expression, encoders, the strict reader."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from lvlm_answers import PROMPTS, answer, ask, judge, people

from vlmfair.errors import ConfigError, ContractError, ModelError
from vlmfair.models.encoders import Embeddings
from vlmfair.papers.lvlm_fairness.judge import judge_responses
from vlmfair.papers.lvlm_fairness.judges import EncoderJudge, RegexJudge, StrictJudge, open_judge

NURSES = people([(3, {"gender": "Female", "occupation": "nurse"})])


class LetterEncoder:
    """Counts letters: texts that share letters are near each other; remembers what it was given."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def encode_texts(self, texts: Sequence[str]) -> Embeddings:
        self.seen += texts
        counts = np.array(
            [[text.lower().count(c) for c in map(chr, range(33, 123))] for text in texts]
        )
        return (counts / np.linalg.norm(counts, axis=1, keepdims=True)).astype(np.float32)


def encoder_judge(name: str, first_character: bool = False) -> tuple[EncoderJudge, LetterEncoder]:
    encoder = LetterEncoder()
    return EncoderJudge(name, encoder, PROMPTS.encoders[name], first_character), encoder


def read(by: object, texts: Sequence[str], prompt: str) -> list[str | None]:
    return [reading.answer for reading in by.read(texts, prompt, PROMPTS)]  # type: ignore[attr-defined]


def test_the_regular_expression_wants_the_class_alone_with_its_underscore() -> None:
    texts = ['"Nurse".', "basketball_player", "basketball player", "a nurse", "nurse!\n", ""]

    # re.sub(r'[^\w\s]', '', answer.strip()).lower() == class, as released.
    found = read(RegexJudge(), texts, "p1")
    assert found == ["nurse", "basketball_player", None, None, "nurse", None]


def test_the_regular_expression_takes_the_first_word_of_a_single_choice() -> None:
    texts = ["A. Yes", "B. No", "C. Unknown. Yes or no.", "A", "Rationale: no.\nAnswer: Yes"]

    assert read(RegexJudge(), texts, "p2") == ["Yes", "No", "Unknown", None, "Yes"]


def test_clip_compares_photos_of_classes_with_the_first_fifty_words() -> None:
    clip, encoder = encoder_judge("clip_text")

    found = read(clip, ['"nurse"', " ".join(["guitarist"] * 60)], "p1")

    assert found == ["nurse", "guitarist"]
    assert encoder.seen[0] == 'a photo of a "nurse"'
    assert encoder.seen[1] == "a photo of a " + " ".join(["guitarist"] * 50)
    assert "a photo of a soccer_player" in encoder.seen


def test_clip_as_released_encodes_one_character() -> None:
    clip, encoder = encoder_judge("clip_text", first_character=True)

    read(clip, ['"nurse"', ' "singer"'], "p1")

    assert encoder.seen[:2] == ['a photo of a "', "a photo of a  "]


def test_sentence_t5_compares_bare_texts() -> None:
    sentences, encoder = encoder_judge("sentence_t5")

    assert read(sentences, [" nurse "], "p1") == ["nurse"]
    assert encoder.seen[:3] == ["nurse", "astronaut", "backpacker"]


def test_an_encoder_compares_a_single_choice_with_the_options_as_offered() -> None:
    clip, encoder = encoder_judge("clip_text")

    found = read(clip, ["A. Yes", "B. No, there is none", "Rationale: no\nAnswer: Yes"], "p2")

    assert found == ["Yes", "No", "Yes"]
    assert encoder.seen == [
        "A. Yes",
        "B. No, there is none",
        "Yes",
        "A. Yes",
        "B. No",
        "C. Unknown",
    ]


def test_an_encoder_answers_whatever_it_is_given_but_nothing() -> None:
    clip, _ = encoder_judge("clip_text")

    readings = clip.read(["I'm sorry, I can't help.", "  "], "p1", PROMPTS)

    assert [reading.status for reading in readings] == ["ok", "unparsed"]


def test_judges_of_the_same_responses_may_differ() -> None:
    texts = ["The person is a nurse", '"nurse"', "nurses and doctors"]
    requests = ask(NURSES, ["p1"])
    responses = answer(requests, texts)

    strict = judge_responses(requests, responses, judge=StrictJudge(), prompts=PROMPTS)
    regex = judge_responses(requests, responses, judge=RegexJudge(), prompts=PROMPTS)

    assert strict["error"].to_pylist() == [0, 0, 1]
    assert regex["error"].to_pylist() == [1, 0, 1]
    assert strict["status"].to_pylist() == ["ok", "ok", "unparsed"]
    assert strict["rule"].to_pylist() == ["unique_mention", "exact", "none"]
    assert set(regex["judge"].to_pylist()) == {"regex"}


def test_a_judgement_knows_its_question_and_the_right_answer() -> None:
    judged = judge(
        NURSES.slice(0, 1), ["p1", "p2"], lambda q, _: "nurse" if q["prompt"] == "p1" else "A"
    )

    rows = judged.select(["prompt", "occupation", "truth", "predicted", "experiment"]).to_pylist()

    assert rows == [
        {
            "prompt": "p1",
            "occupation": "nurse",
            "truth": "nurse",
            "predicted": "nurse",
            "experiment": "facet",
        },
        {
            "prompt": "p2",
            "occupation": "nurse",
            "truth": "Yes",
            "predicted": "Yes",
            "experiment": "facet",
        },
    ]


def test_a_failed_request_has_no_error_and_a_held_back_answer_is_refused() -> None:
    requests = ask(NURSES, ["p1"])
    responses = answer(requests, [None, "nurse", "nurse"])
    reasons = [None, "refused", "stop"]
    place = responses.column_names.index("finish_reason")
    field = responses.schema.field("finish_reason")
    responses = responses.set_column(place, field, pa.array(reasons, pa.string()).cast(field.type))

    judged = judge_responses(requests, responses, judge=StrictJudge(), prompts=PROMPTS)

    assert judged["status"].to_pylist() == ["error", "refused", "ok"]
    assert judged["error"].to_pylist() == [None, 1.0, 0.0]


def test_responses_may_come_in_any_order_but_must_be_the_requests() -> None:
    requests = ask(NURSES, ["p1"])
    responses = answer(requests, ["nurse", "doctor", "singer"])

    judged = judge_responses(
        requests, responses.take([2, 0, 1]), judge=StrictJudge(), prompts=PROMPTS
    )

    assert judged["predicted"].to_pylist() == ["nurse", "doctor", "singer"]
    with pytest.raises(ContractError, match="1 of 3 ids are missing"):
        judge_responses(requests, responses.slice(1), judge=StrictJudge(), prompts=PROMPTS)


def test_an_unknown_judge_or_an_encoder_without_its_files_is_explained() -> None:
    with pytest.raises(ConfigError, match="oracle is no judge. Use regex, clip_text"):
        open_judge("oracle", PROMPTS, {})
    with pytest.raises(ConfigError, match=r"encoders\.clip_text: model is missing"):
        open_judge("clip_text", PROMPTS, {})
    with pytest.raises(ModelError, match="ViT-B-32 is no folder, and there is no file None"):
        open_judge("clip_text", PROMPTS, {"model": "ViT-B-32"})
    with pytest.raises(ModelError, match="nowhere is not downloaded. Run: hf download sentence"):
        open_judge("sentence_t5", PROMPTS, {"path": "nowhere"})
