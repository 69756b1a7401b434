"""The answer store keeps answers by content, and survives what happens to long runs."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vlmfair.inference import store as store_module
from vlmfair.inference.queries import Answer, ImageRef, Query, Turn
from vlmfair.inference.store import AnswerStore, answer_key
from vlmfair.models.chat import RenderedPrompt

IDENTITY = {"model": "tiny", "content": "abc", "semantics": 1}


def key(number: int) -> bytes:
    return number.to_bytes(16, "little")


def scored(number: int) -> Answer:
    return Answer(
        f"r{number}",
        "full_forward",
        logits=[float(number), -1.5],
        logsumexp=[3.25],
        label_tokens="7 9",
        prompt_tokens=90,
        completion_tokens=0,
    )


def test_answers_come_back_as_they_were(tmp_path: Path) -> None:
    said = Answer(
        "r3", "full_forward", text="A nurse.", prompt_tokens=9, completion_tokens=3,
        finish_reason="stop",
    )  # fmt: skip
    with AnswerStore(tmp_path, IDENTITY) as store:
        store.add(key(1), scored(1))
        store.add(key(3), said)

    found = AnswerStore(tmp_path, IDENTITY).find([key(3), key(2), key(1)]).to_pylist()

    assert [row["row"] for row in found] == [0, 2]
    assert (found[0]["text"], found[0]["finish_reason"], found[0]["logits"]) == (
        "A nurse.",
        "stop",
        None,
    )
    assert (found[1]["logits"], found[1]["logsumexp"]) == ([1.0, -1.5], [3.25])
    assert (found[1]["label_tokens"], found[1]["prompt_tokens"]) == ("7 9", 90)


def test_errors_and_empty_answers_are_not_kept(tmp_path: Path) -> None:
    with AnswerStore(tmp_path, IDENTITY) as store:
        store.add(key(1), Answer("r1", "full_forward", error="the prompt has 9 tokens"))
        store.add(key(2), Answer("r2", "full_forward", text=" \n", finish_reason="stop"))

    assert len(AnswerStore(tmp_path, IDENTITY).find([key(1), key(2)])) == 0
    assert list(tmp_path.rglob("*.parquet")) == []


@pytest.mark.parametrize(
    "changed",
    [{"content": "abd"}, {"semantics": 2}, {"model": "other"}, {"dtype": "bfloat16"}],
)
def test_another_model_or_setting_finds_nothing(tmp_path: Path, changed: dict[str, Any]) -> None:
    with AnswerStore(tmp_path, IDENTITY) as store:
        store.add(key(1), scored(1))

    assert len(AnswerStore(tmp_path, {**IDENTITY, **changed}).find([key(1)])) == 0


def test_it_flushes_by_number_and_by_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(store_module.time, "monotonic", lambda: clock[0])
    store = AnswerStore(tmp_path, IDENTITY, flush_answers=3, flush_seconds=30)

    for number in range(3):
        store.add(key(number), scored(number))
    assert len(AnswerStore(tmp_path, IDENTITY).find([key(n) for n in range(9)])) == 3

    store.add(key(3), scored(3))
    assert len(AnswerStore(tmp_path, IDENTITY).find([key(n) for n in range(9)])) == 3

    clock[0] += 30
    store.add(key(4), scored(4))
    assert len(AnswerStore(tmp_path, IDENTITY).find([key(n) for n in range(9)])) == 5


def test_two_writers_do_no_harm(tmp_path: Path) -> None:
    first, second = AnswerStore(tmp_path, IDENTITY), AnswerStore(tmp_path, IDENTITY)
    for number in range(4):
        first.add(key(number), scored(number))
        second.add(key(number + 2), scored(number + 2))
    first.flush()
    second.flush()

    found = AnswerStore(tmp_path, IDENTITY).find([key(n) for n in range(6)])

    assert found["row"].to_pylist() == [0, 1, 2, 3, 4, 5]
    assert [logits[0] for logits in found["logits"].to_pylist()] == [0, 1, 2, 3, 4, 5]


def _truncate(part: Path, folder: Path) -> None:
    part.write_bytes(part.read_bytes()[:-7])


def _bring_from_another_model(part: Path, folder: Path) -> None:
    other = AnswerStore(folder / "elsewhere", {**IDENTITY, "content": "other"})
    other.add(key(1), scored(1))
    other.flush()
    (stranger,) = other.folder.glob("*.parquet")
    stranger.rename(part)


def _replace_by_another_table(part: Path, folder: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), part)


def _empty(part: Path, folder: Path) -> None:
    part.write_bytes(b"")


@pytest.mark.parametrize(
    "damage", [_truncate, _bring_from_another_model, _replace_by_another_table, _empty]
)
def test_a_damaged_or_foreign_part_is_skipped_and_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: Any
) -> None:
    for number in (1, 2):
        with AnswerStore(tmp_path, IDENTITY) as store:
            store.add(key(number), scored(number))
            if number == 1:
                store.flush()
                (part,) = store.folder.glob("*.parquet")
    damage(part, tmp_path)
    store = AnswerStore(tmp_path, IDENTITY)

    with caplog.at_level(logging.WARNING):
        found = store.find([key(1), key(2)])

    assert found["row"].to_pylist() == [1]
    assert store.skipped_parts == [part.name]
    assert f"{part} is skipped, and its answers are asked again" in caplog.text


def test_an_unfinished_part_is_not_read(tmp_path: Path) -> None:
    with AnswerStore(tmp_path, IDENTITY) as store:
        store.add(key(1), scored(1))
    (part,) = store.folder.glob("*.parquet")
    part.rename(part.with_name("." + part.name))

    fresh = AnswerStore(tmp_path, IDENTITY)

    assert len(fresh.find([key(1)])) == 0
    assert fresh.skipped_parts == []


def test_an_answer_takes_few_bytes(tmp_path: Path) -> None:
    # 2.5 million answers below 400 MB: 160 bytes each; twelve logits and four sums are 64 of them.
    with AnswerStore(tmp_path, IDENTITY) as store:
        for number in range(2000):
            logits = [((number * 7919 + place * 104729) % 10007) / 7 for place in range(12)]
            store.add(
                number.to_bytes(8, "little") * 2,
                Answer("r", "m", logits, logits[:4], "1 2 3", None, 94 + number % 14, 0),
            )

    size = sum(part.stat().st_size for part in store.folder.iterdir())

    assert size / 2000 < 160


BASE = Query("r", (Turn("user", "Hi", (ImageRef("a.png", "1" * 64),)),), labels=(" Yes",))
PROMPT = RenderedPrompt("Hi", (1, 2, 3), True)


def test_the_key_ignores_names_and_follows_content() -> None:
    base = answer_key(BASE, PROMPT, (7,), (1.0,))
    renamed = Query(
        "other", (Turn("user", "Hi", (ImageRef("moved/b.png", "1" * 64),)),), labels=("yes",)
    )

    assert answer_key(renamed, PROMPT, (7,), (1.0,)) == base


@pytest.mark.parametrize(
    ("query", "prompt", "label_ids", "temperatures"),
    [
        (BASE, RenderedPrompt("Hi", (1, 2, 4), True), (7,), (1.0,)),
        (BASE, PROMPT, (8,), (1.0,)),
        (BASE, PROMPT, (7, 8), (1.0,)),
        (BASE, PROMPT, (7,), (0.5,)),
        (BASE, PROMPT, (7,), (1.0, 0.5)),
        (Query("r", (Turn("user", "Hi", (ImageRef("a", "2" * 64),)),)), PROMPT, (7,), (1.0,)),
        (
            Query("r", (Turn("user", "Hi", (ImageRef("a", "1" * 64, "resize:8x8"),)),)),
            PROMPT,
            (7,),
            (1.0,),
        ),
        (Query("r", BASE.turns, mode="generate"), PROMPT, (), ()),
    ],
)
def test_whatever_decides_an_answer_changes_its_key(
    query: Query, prompt: RenderedPrompt, label_ids: Any, temperatures: Any
) -> None:
    changed = answer_key(query, prompt, label_ids, temperatures)

    assert changed != answer_key(BASE, PROMPT, (7,), (1.0,))


def test_the_limit_on_new_tokens_is_part_of_a_generations_key() -> None:
    short, long = (
        Query("r", BASE.turns, mode="generate", max_new_tokens=limit) for limit in (8, 16)
    )

    assert answer_key(short, PROMPT, (), ()) != answer_key(long, PROMPT, (), ())


def test_a_flipped_bit_never_becomes_another_answer(tmp_path: Path) -> None:
    with AnswerStore(tmp_path, IDENTITY) as store:
        for number in range(300):
            store.add(key(number), scored(number))
    keys = [key(number) for number in range(300)]
    whole = store.find(keys)["logits"].to_pylist()
    part = next(store.folder.glob("*.parquet"))
    content = part.read_bytes()

    for place in range(4, len(content), max(1, len(content) // 60)):
        part.write_bytes(content[:place] + bytes([content[place] ^ 0x10]) + content[place + 1 :])
        found = AnswerStore(tmp_path, IDENTITY).find(keys)
        for row, logits in zip(found["row"].to_pylist(), found["logits"].to_pylist(), strict=True):
            assert logits == whole[row], f"byte {place}"
