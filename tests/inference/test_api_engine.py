"""A served model is asked each question once: what is sent, answered, refused, and stops all."""

from __future__ import annotations

import base64
import io
import time
from pathlib import Path

import fake_api
import pytest
from fake_api import (
    KEY,
    Reaction,
    Served,
    api_engine,
    ask_api,
    by_question,
    completion,
)
from PIL import Image
from tiny_llava import DrawImage

from vlmfair.errors import InferenceError
from vlmfair.inference.queries import ImageRef, Query, Turn


def test_each_question_is_asked_once_and_not_too_many_at_a_time(
    served: Served, tmp_path: Path
) -> None:
    served.always = fake_api.after(0.02)
    questions = [f"question {number}" for number in range(20)]

    answers = by_question(
        api_engine(served, tmp_path, concurrency=5).generate(map(ask_api, questions))
    )

    assert {name: answer.text for name, answer in answers.items()} == {
        question: question.upper() for question in questions
    }
    assert sorted(served.requests) == sorted(questions)
    assert 2 <= served.most_at_once <= 5
    first = answers["question 0"]
    assert (first.prompt_tokens, first.completion_tokens) == (100, 10)
    assert (first.finish_reason, first.inference_mode, first.error) == ("stop", "api", None)


def test_a_question_is_sent_as_chat_with_the_images_own_bytes(
    served: Served, tmp_path: Path, draw_image: DrawImage
) -> None:
    shown, resized = draw_image(1), draw_image(2, transform="resize:8x6")
    query = Query(
        "q",
        (
            Turn("system", "Be brief."),
            Turn("user", "Who?", (shown,)),
            Turn("assistant", "A nurse."),
            Turn("user", "And here?", (resized,)),
        ),
        mode="generate",
        max_new_tokens=7,
    )

    assert by_question(api_engine(served, tmp_path, seed=3).generate([query]))["q"].error is None

    body = served.bodies[0]
    system, user, assistant, last = body.pop("messages")
    assert body == {"model": "served-2024-11-20", "max_tokens": 7, "temperature": 0.0, "seed": 3}
    assert system == {"role": "system", "content": "Be brief."}
    assert assistant == {"role": "assistant", "content": "A nurse."}
    sent = base64.b64encode(Path(shown.path).read_bytes()).decode()
    assert user["content"] == [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{sent}"}},
        {"type": "text", "text": "Who?"},
    ]
    head, _, encoded = last["content"][0]["image_url"]["url"].partition(",")
    assert head == "data:image/png;base64"
    assert Image.open(io.BytesIO(base64.b64decode(encoded))).size == (8, 6)
    assert served.headers[0]["authorization"] == f"Bearer {KEY}"


def test_settings_a_server_does_not_know_can_be_left_out(served: Served, tmp_path: Path) -> None:
    asking = api_engine(served, tmp_path, temperature=None, token_limit="max_completion_tokens")

    by_question(asking.generate([ask_api("hello")]))

    assert served.bodies[0] == {
        "model": "served-2024-11-20",
        "messages": [{"role": "user", "content": "hello"}],
        "max_completion_tokens": 16,
    }


def test_whoever_stops_listening_stops_the_asking(served: Served, tmp_path: Path) -> None:
    served.always = fake_api.after(0.05)
    answers = api_engine(served, tmp_path, concurrency=2).generate(
        map(ask_api, map(str, range(50)))
    )

    next(answers)
    next(answers)
    answers.close()  # type: ignore[attr-defined]
    asked = len(served.requests)
    time.sleep(0.15)

    assert len(served.requests) == asked <= 5


@pytest.mark.parametrize(
    ("reaction", "sentence"),
    [
        (
            fake_api.error(401, "Incorrect API key provided"),
            "does not accept the key (401: Incorrect API key provided). 3 questions are left, the "
            "other answers are stored. Put a valid key into the variable that api_key_env names.",
        ),
        (fake_api.error(403, "Country not supported"), "forbids the question (403: Country not"),
        (fake_api.error(404, "no model x"), "(404: no model x). 3 questions are left"),
        (fake_api.error(404, "no model x"), "Correct api_model or base_url."),
        (fake_api.error(429, "quota", "insufficient_quota"), "Top up the account"),
        (fake_api.error(307, "moved"), "Write that address as base_url."),
    ],
)
def test_what_no_question_can_pass_stops_at_once(
    served: Served, tmp_path: Path, reaction: Reaction, sentence: str
) -> None:
    served.always = reaction
    questions = [ask_api(name) for name in ("a", "b", "c")]

    with pytest.raises(InferenceError) as caught:
        list(api_engine(served, tmp_path, concurrency=1).generate(questions))

    assert sentence in str(caught.value)
    assert served.requests == ["a"]


def test_answers_under_way_are_yielded_before_a_stop(served: Served, tmp_path: Path) -> None:
    served.reactions = {"slow": [fake_api.after(0.2)], "locked": [fake_api.error(401)]}
    questions = ("first", "slow", "locked", "never")
    got = []

    with pytest.raises(InferenceError, match="2 questions are left"):
        for answer in api_engine(served, tmp_path, concurrency=2).generate(map(ask_api, questions)):
            got.append(answer.text)

    assert got == ["FIRST", "SLOW"]


def test_a_refused_question_becomes_one_error_row(served: Served, tmp_path: Path) -> None:
    served.reactions["odd"] = [fake_api.error(400, "image too small")]

    answers = by_question(api_engine(served, tmp_path).generate([ask_api("odd"), ask_api("easy")]))

    assert answers["odd"].error == (
        "the server refuses the question (400: image too small). Correct the entry's settings, or "
        "take the image out of the selection."
    )
    assert served.requests.count("odd") == 1
    assert answers["easy"].text == "EASY"


def test_a_server_that_refuses_everything_is_not_asked_everything(
    served: Served, tmp_path: Path
) -> None:
    served.always = fake_api.error(400, "unsupported parameter: max_tokens")

    with pytest.raises(InferenceError) as caught:
        list(
            api_engine(served, tmp_path, concurrency=1).generate(
                ask_api(f"question {number}") for number in range(500)
            )
        )

    assert "10 questions in a row have failed, the last one because" in str(caught.value)
    assert "unsupported parameter: max_tokens" in str(caught.value)
    assert "490 questions are left" in str(caught.value)
    assert len(served.requests) == 10


@pytest.mark.parametrize(
    ("reaction", "text"),
    [
        (fake_api.reply(completion(None, refusal="I can't help with that.")), "I can't help with"),
        (fake_api.reply(completion("I", reason="content_filter")), "I"),
        (fake_api.reply(completion(None, reason="content_filter: SAFETY")), ""),
        (fake_api.error(400, "Blocked by the filter", "content_filter"), "Blocked by the filter"),
    ],
)
def test_refusals_are_answers(
    served: Served, tmp_path: Path, reaction: Reaction, text: str
) -> None:
    served.reactions["rude"] = [reaction]

    answers = by_question(api_engine(served, tmp_path).generate([ask_api("rude")]))

    assert answers["rude"].finish_reason == "refused"
    assert answers["rude"].error is None
    assert (answers["rude"].text or "").startswith(text)
    assert served.requests == ["rude"]


def test_an_answer_of_nothing_but_reasoning_says_what_to_raise(
    served: Served, tmp_path: Path
) -> None:
    served.reactions["hard"] = [fake_api.reply(completion("", reason="length"))]

    answers = by_question(api_engine(served, tmp_path).generate([ask_api("hard")]))

    assert "all of its 16 tokens went into reasoning" in str(answers["hard"].error)


def test_odd_contents_become_text(served: Served, tmp_path: Path) -> None:
    parts = [{"type": "text", "text": "one "}, {"type": "text", "text": "two"}]
    served.reactions = {
        "parts": [fake_api.reply(completion(parts))],  # type: ignore[arg-type]
        "surrogate": [fake_api.reply(completion("\ud83d!"))],
        "usage": [fake_api.reply(completion("x", usage={"prompt_tokens": -5}, model=None))],
    }

    answers = by_question(api_engine(served, tmp_path).generate(map(ask_api, served.reactions)))

    assert answers["parts"].text == "one two"
    assert answers["surrogate"].text == "?!"
    assert (answers["usage"].text, answers["usage"].prompt_tokens) == ("x", None)


def test_damaged_images_are_not_paid_for(
    served: Served, tmp_path: Path, draw_image: DrawImage
) -> None:
    good, gone = draw_image(1), ImageRef(str(tmp_path / "gone.png"), "0" * 64)
    changed = ImageRef(good.path, "0" * 64)

    answers = by_question(
        api_engine(served, tmp_path).generate([ask_api("gone", gone), ask_api("good", good)])
    )

    assert "gone.png cannot be read" in str(answers["gone"].error)
    assert answers["good"].text == "GOOD"
    with pytest.raises(InferenceError, match=r"not the one that the samples.*Restore the raw"):
        list(api_engine(served, tmp_path).generate([ask_api("changed", changed)]))
    assert served.requests == ["good"]


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        (ask_api("a", assistant_prefix="The"), "does not continue a given beginning"),
        (ask_api("a", rendering="raw"), "takes no raw prompt"),
        (
            Query("a", (Turn("assistant", "x", (ImageRef("i", "0"),)),), mode="generate"),
            "takes images from the user only",
        ),
    ],
)
def test_what_chat_servers_cannot_do_is_an_error_row(
    served: Served, tmp_path: Path, query: Query, sentence: str
) -> None:
    answers = by_question(api_engine(served, tmp_path).generate([query]))

    assert sentence in str(answers["a"].error)
    assert served.requests == []
