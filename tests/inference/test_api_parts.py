"""The small parts of asking a server: pauses, replies, images, money."""

from __future__ import annotations

import base64
import hashlib
import json
import random
from pathlib import Path

import pytest
from fake_api import completion
from PIL import Image

from vlmfair.inference.api_budget import Estimate
from vlmfair.inference.api_messages import api_answer_key, data_url
from vlmfair.inference.api_reply import Failure, read_reply
from vlmfair.inference.api_retry import Pauses, retry_after
from vlmfair.inference.queries import Answer, ImageRef, Query, Turn
from vlmfair.inference.store import is_kept
from vlmfair.models.api_settings import ApiSettings


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        # 10 s after the Unix time below, in the three forms of RFC 9110.
        ({"retry-after": "Sun, 09 Sep 2001 01:46:50 GMT"}, 10.0),
        ({"retry-after": "Sunday, 09-Sep-01 01:46:50 GMT"}, 10.0),
        ({"retry-after": "Sun Sep  9 01:46:50 2001"}, 10.0),
        ({"retry-after": "Sun, 09 Sep 2001 01:46:00 GMT"}, 0.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Sun, 99 Sep 2001 99:99:99 GMT"}, None),
        ({}, None),
    ],
)
def test_what_a_server_asks_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, now=1_000_000_000.0) == seconds


def test_pauses_grow_to_a_minute_and_are_never_the_same() -> None:
    pauses = Pauses(1.0, random.Random(1))

    lengths = [pauses.length(tries, None) for tries in range(1, 12)]

    for tries, length in enumerate(lengths, start=1):
        whole = min(60.0, 2.0 ** (tries - 1))
        assert whole / 2 <= length <= whole
    assert len(set(lengths)) == len(lengths)
    assert 30.0 <= pauses.length(1, 30.0) <= 30.1
    assert pauses.length(10_000, None) <= 60.0


@pytest.mark.parametrize(
    ("format_name", "media_type"),
    [("JPEG", "image/jpeg"), ("PNG", "image/png"), ("WEBP", "image/webp"), ("GIF", "image/gif")],
)
def test_an_image_is_sent_as_it_lies_on_disk_whatever_its_name_says(
    tmp_path: Path, format_name: str, media_type: str
) -> None:
    path = tmp_path / "picture.dat"
    Image.new("RGB", (8, 8), "red").save(path, format_name)
    content = path.read_bytes()

    url = data_url(ImageRef(str(path), hashlib.sha256(content).hexdigest()))

    assert url == f"data:{media_type};base64,{base64.b64encode(content).decode()}"


def test_a_format_that_servers_do_not_read_becomes_png(tmp_path: Path) -> None:
    path = tmp_path / "picture.jpg"
    Image.new("RGB", (8, 8), "red").save(path, "BMP")

    url = data_url(ImageRef(str(path), hashlib.sha256(path.read_bytes()).hexdigest()))

    head, _, encoded = url.partition(",")
    assert head == "data:image/png;base64"
    assert base64.b64decode(encoded).startswith(b"\x89PNG")


def question(text: str, *images: ImageRef, **changes: object) -> Query:
    settings = {"mode": "generate", "max_new_tokens": 16, **changes}
    return Query("r", (Turn("user", text, images),), **settings)  # type: ignore[arg-type]


def test_whatever_is_asked_is_part_of_the_key_and_names_are_not() -> None:
    image = ImageRef("a.png", "1" * 64)
    keys = {
        api_answer_key(query, temperatures)
        for query, temperatures in [
            (question("q", image), (1.0,)),
            (question("p", image), (1.0,)),
            (question("q"), (1.0,)),
            (question("q", ImageRef("a.png", "2" * 64)), (1.0,)),
            (question("q", ImageRef("a.png", "1" * 64, "resize:8x8")), (1.0,)),
            (question("q", image, image), (1.0,)),
            (question("q", image, max_new_tokens=17), (1.0,)),
            (question("q", image, assistant_prefix="The"), (1.0,)),
            (question("q", image, mode="score", labels=("Yes", "No")), (1.0,)),
            (question("q", image, mode="score", labels=("No", "Yes")), (1.0,)),
        ]
    }

    assert len(keys) == 10
    moved = question("q", ImageRef("elsewhere/b.png", "1" * 64), sample_id="other")
    assert api_answer_key(moved, (0.5,)) in keys


@pytest.mark.parametrize(
    ("text", "finish_reason", "kept"),
    [("a", "stop", True), (" ", "stop", False), ("", "refused", True), (None, "refused", True)],
)
def test_a_refusal_is_kept_even_without_a_word(
    text: str | None, finish_reason: str, kept: bool
) -> None:
    assert is_kept(Answer("r", "api", text=text, finish_reason=finish_reason)) is kept
    assert not is_kept(Answer("r", "api", error="broken", finish_reason=finish_reason))


def test_an_estimate_follows_the_server_that_counts_more() -> None:
    settings = ApiSettings("http://h", "m", price_input=2.0, price_output=10.0)
    estimate, asked = Estimate(settings), question("x" * 100, ImageRef("a", "1"))

    # 100 bytes / 2 + 50 + 1,500 for the image = 1,600 tokens at 2, and 16 at 10, for a million.
    assert estimate.cost(asked) == pytest.approx((1600 * 2 + 16 * 10) / 1e6)

    estimate.learn(asked, 16_000)
    estimate.learn(asked, 100)

    assert estimate.cost(asked) == pytest.approx((16_000 * 2 + 16 * 10) / 1e6)


@pytest.mark.parametrize(
    "logprobs",
    [
        None,
        {"content": None},
        {"content": []},
        {"content": [{"token": "Yes", "top_logprobs": []}]},
        {"content": [{"top_logprobs": [{"token": "Yes", "logprob": "much"}]}]},
        {"content": [{"top_logprobs": [{"token": "Yes", "logprob": 2.5}]}]},
        {"content": [{"top_logprobs": [{"token": "Yes", "logprob": float("nan")}]}]},
    ],
)
def test_log_probabilities_that_are_none_are_not_taken(logprobs: object) -> None:
    content = json.dumps(completion("Yes", logprobs=logprobs)).encode()

    assert read_reply(content).first_tokens is None


def test_an_error_in_a_good_response_is_an_error() -> None:
    for code, retried in ((429, True), ("503", True), (400, False), (None, True)):
        body = json.dumps({"error": {"message": "no", "code": code}}).encode()
        with pytest.raises(Failure, match="no") as caught:
            read_reply(body)
        assert caught.value.retried is retried
