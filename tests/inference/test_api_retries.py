"""A served model is asked with patience: what is tried again, for how long, and how often."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import fake_api
import pytest
from fake_api import (
    ENVIRON,
    Reaction,
    Served,
    api_engine,
    api_entry,
    ask_api,
    by_question,
)

from vlmfair.errors import InferenceError
from vlmfair.inference.api import ApiEngine
from vlmfair.inference.api_budget import Ledger

SLOW = {"drip": fake_api.drip, "late": fake_api.after(1.2)}


@pytest.mark.parametrize(
    "misbehaviour",
    [
        pytest.param(fake_api.error(429), id="429"),
        pytest.param(fake_api.error(500), id="500"),
        pytest.param(fake_api.error(503), id="503"),
        pytest.param(fake_api.raw(b"<html>502 Bad Gateway</html>", 502), id="HTML"),
        pytest.param(fake_api.error(408), id="408"),
        pytest.param(fake_api.raw(b'{"choices": [{"mess'), id="malformed JSON"),
        pytest.param(fake_api.raw(b""), id="empty body"),
        pytest.param(fake_api.raw(b"[" * 100_000), id="deep JSON"),
        pytest.param(fake_api.reply({"choices": []}), id="empty choices"),
        pytest.param(fake_api.reply({"choices": [{"message": None}]}), id="no message"),
        pytest.param(fake_api.reply({"error": {"message": "busy", "code": 429}}), id="200 error"),
        pytest.param(fake_api.truncate, id="truncated body"),
        pytest.param(fake_api.reset, id="connection reset"),
        pytest.param(SLOW["drip"], id="slow drip"),
        pytest.param(SLOW["late"], id="time-out"),
    ],
)
def test_what_may_pass_is_tried_again(
    served: Served, tmp_path: Path, misbehaviour: Reaction
) -> None:
    served.reactions["hard"] = [misbehaviour, misbehaviour]
    # Only what is slow needs a short time-out, which a busy machine may exceed by itself.
    short = {"timeout_seconds": 0.6} if misbehaviour in SLOW.values() else {}
    asking = api_engine(served, tmp_path, **short)

    answers = by_question(asking.generate([ask_api("hard"), ask_api("easy")]))

    assert {name: answer.text for name, answer in answers.items()} == {
        "hard": "HARD",
        "easy": "EASY",
    }
    assert served.requests.count("hard") == 3
    assert served.requests.count("easy") == 1


@pytest.mark.parametrize("form", ["seconds", "milliseconds", "date"])
def test_the_pause_that_a_server_asks_for_is_kept_by_all(
    served: Served, tmp_path: Path, form: str
) -> None:
    if form == "date":
        # HTTP dates have whole seconds: between one and two from now.
        wanted, least = datetime.now(UTC) + timedelta(seconds=2), 0.9
        busy = fake_api.error(429, Retry_After=format_datetime(wanted, usegmt=True))
    elif form == "seconds":
        busy, least = fake_api.error(429, Retry_After="0.4"), 0.4
    else:
        busy, least = fake_api.error(429, retry_after_ms="400"), 0.4
    served.reactions["first"] = [busy]
    started = time.monotonic()

    answers = by_question(
        api_engine(served, tmp_path, concurrency=1).generate([ask_api("first"), ask_api("second")])
    )

    assert {answer.error for answer in answers.values()} == {None}
    assert served.requests == ["first", "first", "second"]
    assert served.times[1] - started >= least


def test_a_storm_of_429_is_outlasted_and_no_answer_is_lost(served: Served, tmp_path: Path) -> None:
    questions = [f"question {number}" for number in range(12)]
    for place, question in enumerate(questions):
        served.reactions[question] = [fake_api.error(429)] * (place % 4)

    answers = by_question(
        api_engine(served, tmp_path, concurrency=6).generate(map(ask_api, questions))
    )

    assert {name: answer.text for name, answer in answers.items()} == {
        question: question.upper() for question in questions
    }
    assert sorted(served.answered) == sorted(questions)


def test_whatever_a_server_does_each_question_is_answered_once(
    served: Served, tmp_path: Path
) -> None:
    chance = random.Random(4)
    misbehaviours = [
        *(fake_api.error(status) for status in (429, 500, 502, 503)),
        fake_api.error(429, retry_after_ms="20"),
        *(fake_api.raw(b"{"), fake_api.reply({"choices": []}), fake_api.truncate, fake_api.reset),
    ]
    questions = [f"question {number}" for number in range(60)]
    for question in questions:
        # At most three, because the fourth that may have been charged is the last.
        served.reactions[question] = chance.choices(misbehaviours, k=chance.randrange(4))

    answers = by_question(
        api_engine(served, tmp_path, concurrency=8).generate(map(ask_api, questions))
    )

    assert {name: answer.text for name, answer in answers.items()} == {
        question: question.upper() for question in questions
    }
    assert sorted(served.answered) == sorted(questions)


def test_an_engine_can_be_asked_again(served: Served, tmp_path: Path) -> None:
    asking = api_engine(served, tmp_path)
    for name in ("first", "second"):
        served.reactions[name] = [fake_api.error(503), fake_api.error(429, retry_after_ms="10")]
        questions = [ask_api(name), *(ask_api(f"{name} {number}") for number in range(5))]

        assert by_question(asking.generate(questions))[name].text == name.upper()


def test_waiting_has_an_end_that_says_why(served: Served, tmp_path: Path) -> None:
    served.reactions["hard"] = [fake_api.error(503, "overloaded")] * 100
    asking = api_engine(served, tmp_path, max_wait_seconds=0.2)
    started = time.monotonic()

    answers = by_question(asking.generate([ask_api("hard"), ask_api("easy")]))

    assert time.monotonic() - started < 4
    assert answers["easy"].text == "EASY"
    assert answers["hard"].text is None
    assert answers["hard"].error is not None
    assert "the server is not ready (503: overloaded)" in answers["hard"].error
    assert "tries in 0 s" in answers["hard"].error
    assert "Run again later; stored answers are reused." in answers["hard"].error


def test_a_pause_longer_than_the_patience_is_not_begun(served: Served, tmp_path: Path) -> None:
    served.reactions["hard"] = [fake_api.error(429, Retry_After="3600")]

    answers = by_question(api_engine(served, tmp_path).generate([ask_api("hard"), ask_api("easy")]))

    assert answers["hard"].error is not None
    assert answers["easy"].text == "EASY"
    assert served.requests.count("hard") == 1


def test_what_is_charged_without_an_answer_is_not_tried_forever(
    served: Served, tmp_path: Path
) -> None:
    served.reactions["hard"] = [fake_api.raw(b"{")] * 100

    answers = by_question(api_engine(served, tmp_path).generate([ask_api("hard")]))

    assert served.requests == ["hard"] * 4
    assert "no complete JSON (4 tries" in str(answers["hard"].error)


def test_a_question_in_a_pause_is_left_when_all_stops(served: Served, tmp_path: Path) -> None:
    busy = [fake_api.error(503)] * 50
    served.reactions = {"busy": busy, "locked": [fake_api.after(0.05, fake_api.error(401))]}
    patience = {"first_wait_seconds": 20.0, "max_wait_seconds": 60.0}
    asking = api_engine(served, tmp_path, concurrency=2, **patience)
    started = time.monotonic()

    with pytest.raises(InferenceError, match=r"does not accept the key .* 2 questions are left"):
        list(asking.generate(map(ask_api, ("first", "busy", "locked"))))

    assert time.monotonic() - started < 5


def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    with fake_api.serve() as gone:
        url = gone.base_url
    ledger = Ledger(tmp_path, None)
    asking = ApiEngine(api_entry(url, max_wait_seconds=0.1), ledger, environ=ENVIRON)

    answers = by_question(asking.generate([ask_api("hello")]))

    sentence = str(answers["hello"].error)
    assert f"the connection to {url.removeprefix('http://').removesuffix('/v1')} failed" in sentence
    assert "Check base_url and that the server runs" in sentence
    # Nothing has left this machine, so that nothing can have been charged.
    assert ledger.spent == 0
