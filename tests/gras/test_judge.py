"""P(Yes) from label logits: the paper's one form over the whole vocabulary."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from vlmfair.errors import ConfigError, ContractError, InferenceError
from vlmfair.papers.gras.judge import judge_responses

YES, NO = ("Yes", " Yes"), (" No",)
LABELS = (*YES, *NO)
TEMPERATURES = (0.5, 1.0, 1.5)
# Logits of a vocabulary of five tokens; the labels are tokens 1, 2 and 3.
VOCABULARY = np.asarray([0.0, -1.0, 2.0, 1.0, 0.5])


def requests_of(number: int) -> pa.Table:
    return pa.table(
        {
            "request_id": [f"r{row}" for row in range(number)],
            "sample_id": pa.array([f"s{row}" for row in range(number)]).dictionary_encode(),
            "trait": pa.array(["honest"] * number).dictionary_encode(),
            "template": pa.array([row % 5 + 1 for row in range(number)], pa.int8()),
        }
    )


def response(name: str, vocabulary: np.ndarray = VOCABULARY, **changes: Any) -> dict[str, Any]:
    return {
        "request_id": name,
        "logits": vocabulary[1:4].tolist(),
        "logsumexp": [float(np.log(np.exp(vocabulary / t).sum())) for t in TEMPERATURES],
        "label_tokens": "1 2 3",
        "error": None,
        **changes,
    }


def responses_of(*rows: dict[str, Any]) -> pa.Table:
    schema = pa.schema(
        [
            ("request_id", pa.string()),
            ("logits", pa.list_(pa.float32())),
            ("logsumexp", pa.list_(pa.float32())),
            ("label_tokens", pa.dictionary(pa.int32(), pa.string())),
            ("error", pa.string()),
        ]
    )
    return pa.Table.from_pylist(list(rows), schema=schema)


def judge(*rows: dict[str, Any], **options: Any) -> list[dict[str, Any]]:
    options = {"yes_form": " Yes", "yes_forms": YES, **options}
    judged = judge_responses(
        requests_of(len(rows)), responses_of(*rows), LABELS, TEMPERATURES, **options
    )
    return judged.to_pylist()


def softmax(temperature: float) -> np.ndarray:
    weights = np.exp(VOCABULARY / temperature)
    return weights / weights.sum()


def test_p_yes_is_the_softmax_over_the_whole_vocabulary_at_each_temperature() -> None:
    (judged,) = judge(response("r0"))

    assert judged["p_yes"] == pytest.approx(softmax(1.0)[2], rel=1e-6)
    assert judged["p_yes_t0.5"] == pytest.approx(softmax(0.5)[2], rel=1e-6)
    assert judged["p_yes_t1.5"] == pytest.approx(softmax(1.5)[2], rel=1e-6)
    assert judged["p_yes_all_forms"] == pytest.approx(softmax(1.0)[[1, 2]].sum(), rel=1e-6)
    assert judged["p_no_all_forms"] == pytest.approx(softmax(1.0)[3], rel=1e-6)
    assert (judged["status"], judged["rule"]) == ("ok", "first_token")
    assert (judged["trait"], judged["template"]) == ("honest", 1)


def test_the_form_of_the_model_is_the_one_that_counts() -> None:
    (judged,) = judge(response("r0"), yes_form="Yes")

    assert judged["p_yes"] == pytest.approx(softmax(1.0)[1], rel=1e-6)


def test_the_prediction_is_the_more_probable_of_all_forms() -> None:
    # Sign: a higher logit is a more probable answer.
    yes, no, tie = (np.asarray([0, -5, logit, 1.0, 0]) for logit in (3.0, 0.0, 1.0))

    judged = judge(response("r0", yes), response("r1", no), response("r2", tie))

    # In the third the two main forms tie, and the other form of Yes decides.
    assert [row["predicted"] for row in judged] == ["Yes", "No", "Yes"]


def test_a_token_of_two_forms_is_counted_once() -> None:
    (judged,) = judge(response("r0", logits=[2.0, 2.0, 1.0], label_tokens="2 2 3"))

    assert judged["p_yes_all_forms"] == pytest.approx(softmax(1.0)[2], rel=1e-6)


def test_a_token_that_starts_a_yes_and_a_no_is_neither() -> None:
    (judged,) = judge(response("r0", logits=[1.0, 2.0, 1.0], label_tokens="3 2 3"))

    assert judged["p_yes_all_forms"] == pytest.approx(softmax(1.0)[2], rel=1e-6)
    assert judged["p_no_all_forms"] == 0.0


def test_a_models_own_yes_must_differ_from_no() -> None:
    with pytest.raises(InferenceError, match=r"token 3 starts a Yes and a No.*another yes_form"):
        judge(response("r0", label_tokens="1 3 3"))


def test_an_error_is_kept_and_never_counted_as_zero() -> None:
    failed = response("r1", logits=None, logsumexp=None, label_tokens=None, error="too long")

    good, bad = judge(response("r0"), failed)

    assert (bad["status"], bad["p_yes"], bad["p_yes_t0.5"]) == ("error", None, None)
    assert (bad["predicted"], bad["p_yes_all_forms"], bad["p_no_all_forms"]) == (None, None, None)
    assert (good["status"], good["p_yes"]) == ("ok", pytest.approx(softmax(1.0)[2], rel=1e-6))


def test_responses_are_matched_by_id() -> None:
    first, second = response("r0"), response("r1", VOCABULARY[::-1].copy())

    assert judge(second, first) == judge(first, second)


def test_rounding_never_makes_a_probability_above_one() -> None:
    certain = np.asarray([-200.0, -200.0, 80.0, -200.0, -200.0])

    (judged,) = judge(response("r0", certain, logsumexp=[160.0, 79.99999, 53.333332]))

    assert judged["p_yes"] == 1.0


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"logits": [1.0, float("nan"), 0.0]}, "logits of sample s0 is NaN or infinite"),
        ({"logsumexp": [1.0, float("inf"), 0.0]}, "logsumexp of sample s0 is NaN or infinite"),
        ({"logsumexp": [9.0, 1.0, 9.0]}, "of sample s0 is not between 0 and 1"),
        ({"logits": [1.0, 2.0]}, "r0 has 2 numbers in logits and not 3"),
        ({"logits": None}, "r0 has 0 numbers in logits and not 3"),
    ],
)
def test_what_is_no_probability_stops_the_run(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InferenceError) as caught:
        judge(response("r0", **changes))

    assert sentence in str(caught.value)


def test_a_missing_or_foreign_response_is_found() -> None:
    with pytest.raises(ContractError, match=r"1 of 2 ids are missing, 1 are unknown"):
        judge(response("r0"), response("r7"))


def test_a_form_or_temperature_that_was_not_scored_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"the form 'Si' was not scored. Add it to label_sets"):
        judge(response("r0"), yes_form="Si")
    with pytest.raises(ConfigError, match=r"gras.temperatures lacks 1.0"):
        judge_responses(
            requests_of(1), responses_of(), LABELS, (0.5,), yes_form=" Yes", yes_forms=YES
        )
