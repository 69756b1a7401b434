"""The key of a served model comes from the environment and is repeated nowhere."""

from __future__ import annotations

import json
from pathlib import Path

import fake_api
import pytest
from fake_api import (
    KEY,
    KEY_VARIABLE,
    Reaction,
    Served,
    api_engine,
    api_entry,
    ask_api,
    by_question,
    completion,
)

from vlmfair.errors import InferenceError, ModelError
from vlmfair.inference.api import ApiEngine
from vlmfair.inference.api_budget import Ledger


@pytest.mark.parametrize(
    ("environ", "sentence"),
    [
        ({}, f"{KEY_VARIABLE} is not set. Run: export {KEY_VARIABLE}=<your key>"),
        ({KEY_VARIABLE: "  \n"}, "is not set"),
        ({KEY_VARIABLE: "sk secret\x01key"}, "holds spaces or characters that no key has"),
    ],
)
def test_a_key_that_is_none_is_refused_without_repeating_it(
    served: Served, tmp_path: Path, environ: dict[str, str], sentence: str
) -> None:
    with pytest.raises(ModelError, match=sentence) as caught:
        api_engine(served, tmp_path, environ)

    assert "secret" not in str(caught.value)


def test_a_server_without_keys_needs_none(served: Served, tmp_path: Path) -> None:
    entry = api_entry(served.base_url, without=("api_key_env",))
    asking = ApiEngine(entry, Ledger(tmp_path, None), environ={})

    assert by_question(asking.generate([ask_api("hello")]))["hello"].text == "HELLO"


@pytest.mark.parametrize(
    "reaction",
    [
        fake_api.error(400, f"the key {KEY} is odd" + " very" * 100),
        fake_api.error(400, "very " * 57 + KEY),
        fake_api.raw(
            json.dumps({"error": {"message": f"<key> {KEY}"}}).replace("-", "\\u002d").encode(), 400
        ),
        fake_api.raw(f"<html>{KEY}</html>".encode(), 500),
        fake_api.reply(completion(f"Your key is {KEY}.", model=KEY)),
        fake_api.error(401, f"Incorrect key {KEY}"),
    ],
)
def test_a_key_that_a_server_repeats_is_taken_out(
    served: Served, tmp_path: Path, reaction: Reaction
) -> None:
    served.always = reaction
    asking = api_engine(served, tmp_path, max_wait_seconds=0.1)

    try:
        seen = repr(list(asking.generate([ask_api("hello")])))
    except InferenceError as error:
        seen = str(error)

    seen += repr(asking.report())
    assert "<key>" in seen or "very" in seen
    # Not even its beginning, where a sentence was cut.
    assert KEY[:10] not in seen
