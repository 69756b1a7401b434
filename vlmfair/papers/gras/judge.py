"""GRAS judgements: label logits become the probability of "Yes" (section 3.3, appendix A.3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vlmfair.contracts import JUDGEMENTS, assert_same_ids, conform
from vlmfair.errors import ConfigError, InferenceError

RULE = "first_token"
_WORD = pa.dictionary(pa.int32(), pa.string())
_ROWS_PER_STEP = 200_000
# Float32 logits and sums may put a probability this much above 1 by rounding.
_ROUNDING = 1e-4


def temperature_column(temperature: float) -> str:
    """Return the column of P(Yes) at a temperature: `p_yes` at 1, else like `p_yes_t0.5`."""
    return "p_yes" if temperature == 1.0 else f"p_yes_t{temperature:g}"


def judge_responses(
    requests: pa.Table,
    responses: pa.Table,
    labels: Sequence[str],
    temperatures: Sequence[float],
    *,
    yes_form: str,
    yes_forms: Sequence[str],
) -> pa.Table:
    """Return one judgement per response: exp(logit / T - logsumexp at T) of the paper's one form.

    `labels` and `temperatures` are in the order of the responses' lists; `yes_forms` says which
    labels are a Yes, the others are a No. `p_yes_all_forms` and `p_no_all_forms` add up the
    distinct first tokens of all forms at T = 1; a token that starts a Yes and a No belongs to
    neither. `predicted` is the larger of the two. Error responses keep their row with status
    `error` and empty numbers. Raises ContractError when requests and responses differ,
    InferenceError on numbers that are no probabilities.
    """
    if yes_form not in labels:
        raise ConfigError(
            f"the form {yes_form!r} was not scored. Add it to label_sets in resources/prompts/"
            f"gras.yaml, or correct yes_form in the sheet of models."
        )
    if 1.0 not in temperatures:
        raise ConfigError("gras.temperatures lacks 1.0, the paper's own. Add it.")
    responses = _in_request_order(requests, responses)
    yes_index = list(labels).index(yes_form)
    is_yes = [label in set(yes_forms) for label in labels]
    steps = range(0, max(len(requests), 1), _ROWS_PER_STEP)
    return conform(
        pa.concat_tables(
            [
                _judge_step(
                    requests.slice(start, _ROWS_PER_STEP),
                    responses.slice(start, _ROWS_PER_STEP),
                    yes_index,
                    is_yes,
                    list(temperatures),
                )
                for start in steps
            ]
        ).unify_dictionaries(),
        JUDGEMENTS,
    )


def _in_request_order(requests: pa.Table, responses: pa.Table) -> pa.Table:
    same_length = len(requests) == len(responses)
    if same_length and pc.all(pc.equal(requests["request_id"], responses["request_id"])).as_py():
        return responses
    assert_same_ids(
        requests["request_id"].to_pylist(), responses["request_id"].to_pylist(), "GRAS responses"
    )
    places = pc.index_in(requests["request_id"], value_set=responses["request_id"])
    return responses.take(places)


def _judge_step(
    requests: pa.Table,
    responses: pa.Table,
    yes_index: int,
    is_yes: Sequence[bool],
    temperatures: list[float],
) -> pa.Table:
    answered = responses["error"].is_null().to_numpy()
    logits = _matrix(requests, responses, "logits", len(is_yes), answered)
    sums = _matrix(requests, responses, "logsumexp", len(temperatures), answered)
    columns: dict[str, pa.Array | pa.ChunkedArray] = {
        name: requests[name].cast(_WORD) for name in ("sample_id", "trait")
    }
    columns["request_id"] = requests["request_id"]
    columns["template"] = requests["template"].cast(pa.int8())
    for place, temperature in enumerate(temperatures):
        p = np.exp(logits[:, yes_index] / temperature - sums[:, place])
        columns[temperature_column(temperature)] = _probabilities(requests, p, answered)
    p_labels = np.exp(logits - sums[:, [temperatures.index(1.0)]])
    yes, no = _totals(p_labels, responses["label_tokens"], is_yes, yes_index)
    columns["p_yes_all_forms"] = _probabilities(requests, yes, answered)
    columns["p_no_all_forms"] = _probabilities(requests, no, answered)
    columns["predicted"] = _either(yes > no, "Yes", "No", mask=~answered)
    columns["status"] = _either(answered, "ok", "error")
    columns["rule"] = _either(np.ones(len(requests), bool), RULE, RULE)
    return pa.table(columns)


def _either(
    flags: np.ndarray, when_true: str, when_false: str, mask: np.ndarray | None = None
) -> pa.DictionaryArray:
    words = [when_true] if when_true == when_false else [when_false, when_true]
    indices = np.zeros(len(flags), np.int32) if len(words) == 1 else flags.astype(np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(indices, mask=mask), pa.array(words))


def _matrix(
    requests: pa.Table, responses: pa.Table, name: str, width: int, answered: np.ndarray
) -> np.ndarray:
    """Return a list column as float64 [rows, width]; rows with an error are NaN."""
    column = responses[name].combine_chunks()
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    wrong = np.flatnonzero(answered & (lengths != width))
    if len(wrong):
        raise InferenceError(
            f"GRAS responses: {requests['request_id'][int(wrong[0])]} has {lengths[wrong[0]]} "
            f"numbers in {name} and not {width}. Delete the responses of this model and run again."
        )
    matrix = np.full((len(responses), width), np.nan)
    flat = column.filter(pa.array(answered)).flatten().to_numpy(zero_copy_only=False)
    matrix[answered] = flat.reshape(-1, width)
    wrong = np.flatnonzero(answered & ~np.isfinite(matrix).all(axis=1))
    if len(wrong):
        raise InferenceError(
            f"GRAS responses: {name} of sample {requests['sample_id'][int(wrong[0])]} is NaN or "
            f"infinite. Write dtype: float32 or bfloat16 for this model in the sheet of models."
        )
    return matrix


def _totals(
    p_labels: np.ndarray, label_tokens: pa.ChunkedArray, is_yes: Sequence[bool], yes_index: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the total probability of Yes and of No, each distinct token counted once."""
    yes, no = np.full(len(p_labels), np.nan), np.full(len(p_labels), np.nan)
    encoded = label_tokens.combine_chunks()
    if not pa.types.is_dictionary(encoded.type):
        encoded = encoded.dictionary_encode()
    places = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
    for place, tokens in enumerate(encoded.dictionary.to_pylist()):
        rows = np.flatnonzero(places == place)
        if not len(rows):
            continue
        ids = tokens.split()
        yes_labels, no_labels = _distinct_labels(ids, is_yes)
        if ids.index(ids[yes_index]) not in yes_labels:
            raise InferenceError(
                f"GRAS responses: token {ids[yes_index]} starts a Yes and a No, so that they "
                f"cannot be told apart. Choose another yes_form in the sheet of models."
            )
        yes[rows] = p_labels[rows][:, yes_labels].sum(axis=1)
        no[rows] = p_labels[rows][:, no_labels].sum(axis=1)
    return yes, no


def _distinct_labels(tokens: Sequence[str], is_yes: Sequence[bool]) -> tuple[list[int], list[int]]:
    """Return the labels to add up: the first one of each token, unless both answers start so."""
    yes_tokens = {token for token, yes in zip(tokens, is_yes, strict=True) if yes}
    no_tokens = {token for token, yes in zip(tokens, is_yes, strict=True) if not yes}
    first = {token: tokens.index(token) for token in tokens}
    return (
        sorted(first[token] for token in yes_tokens - no_tokens),
        sorted(first[token] for token in no_tokens - yes_tokens),
    )


def _probabilities(requests: pa.Table, p: np.ndarray, answered: np.ndarray) -> pa.Array:
    wrong = np.flatnonzero(answered & ~((p >= 0) & (p <= 1 + _ROUNDING)))
    if len(wrong):
        raise InferenceError(
            f"GRAS responses: the probability {p[wrong[0]]} of sample "
            f"{requests['sample_id'][int(wrong[0])]} is not between 0 and 1. "
            f"Delete the responses of this model and run again."
        )
    return pa.array(np.minimum(p, 1.0), pa.float64(), mask=~answered)
