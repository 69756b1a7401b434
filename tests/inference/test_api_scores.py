"""Label scores of a served model come from the tokens that it lists."""

from __future__ import annotations

from pathlib import Path

import fake_api
import pytest
from fake_api import (
    Reaction,
    Served,
    api_engine,
    ask_api,
    by_question,
    completion,
)

from vlmfair.errors import ModelError


def listed(*tokens: tuple[str, float]) -> Reaction:
    rows = [{"token": token, "logprob": logprob, "bytes": None} for token, logprob in tokens]
    first = {"token": tokens[0][0], "logprob": tokens[0][1], "top_logprobs": rows}
    return fake_api.reply(completion(tokens[0][0], logprobs={"content": [first]}))


def test_labels_get_the_log_probabilities_of_their_tokens(served: Served, tmp_path: Path) -> None:
    served.reactions["sure?"] = [listed(("Yes", -0.25), ("No", -1.75), ("The", -4.0))]
    query = ask_api("sure?", mode="score", labels=("Yes", "No", " Yes"))
    asking = api_engine(served, tmp_path, top_logprobs=3)

    scored = by_question(asking.score([query], [1.0]))["sure?"]

    assert (scored.logits, scored.logsumexp) == ([-0.25, -1.75, -100.0], [0.0])
    assert scored.label_tokens == "0 1 2"
    body = served.bodies[0]
    assert (body["max_tokens"], body["logprobs"], body["top_logprobs"]) == (1, True, 3)
    # " Yes" was not listed, so that its probability is at most that of "The": exp(-4).
    assert asking.report()["unlisted_probability_at_most"] == pytest.approx(0.0183156, abs=1e-6)
    assert asking.report()["labels_never_listed"] == [" Yes"]


def test_a_server_without_log_probabilities_says_so(served: Served, tmp_path: Path) -> None:
    query = ask_api("sure?", mode="score", labels=("Yes", "No"))

    answers = by_question(api_engine(served, tmp_path, top_logprobs=20).score([query], [1.0]))

    assert "the server gave no log-probabilities (finish reason stop)" in str(
        answers["sure?"].error
    )


@pytest.mark.parametrize(
    ("top_logprobs", "temperatures", "sentence"),
    [
        (0, [1.0], "the entry has no top_logprobs. Write top_logprobs: 20 in"),
        (20, [0.5, 1.0], "at the temperatures 0.5, 1 .* Write temperatures: \\[1.0\\]"),
    ],
)
def test_scores_that_a_server_cannot_give_are_refused_before_asking(
    served: Served, tmp_path: Path, top_logprobs: int, temperatures: list[float], sentence: str
) -> None:
    query = ask_api("sure?", mode="score", labels=("Yes", "No"))

    with pytest.raises(ModelError, match=sentence):
        list(api_engine(served, tmp_path, top_logprobs=top_logprobs).score([query], temperatures))

    assert served.requests == []
