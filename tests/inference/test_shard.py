"""A shard is answered once: from the store where it can, by the model where it must."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tiny_llava import DrawImage, tiny_entry, write_model

from vlmfair.contracts import REQUESTS, RESPONSES, conform, read_table, write_table
from vlmfair.errors import InferenceError, ModelError
from vlmfair.inference import shard as shard_module
from vlmfair.inference.engine import Engine, open_engine
from vlmfair.inference.queries import CONTEXTS, Answer, Query
from vlmfair.inference.shard import ShardAnswers, answer_shard
from vlmfair.models.registry import ModelEntry

LABELS = {"yes_no": (" Yes", " No")}
TEMPERATURES = (0.5, 1.0)
QUESTIONS = ("Is the person honest?", "Is the person brave?", "Does the person look rude?")


class CountingEngine:
    """The real engine, which notes what it was asked and stops after a number of answers."""

    def __init__(self, asked: list[str], stop_after: int | None, *args: Any, **options: Any):
        self._engine: Engine = open_engine(*args, **options)
        self._asked, self._stop_after = asked, stop_after
        self.mode = self._engine.mode

    def score(self, queries: Iterable[Query], temperatures: Sequence[float]) -> Iterator[Answer]:
        return self._count(self._engine.score(queries, temperatures))

    def generate(self, queries: Iterable[Query]) -> Iterator[Answer]:
        return self._count(self._engine.generate(queries))

    def report(self) -> dict[str, Any]:
        return self._engine.report()

    def _count(self, answers: Iterator[Answer]) -> Iterator[Answer]:
        for answer in answers:
            if self._stop_after is not None and len(self._asked) >= self._stop_after:
                raise KeyboardInterrupt
            self._asked.append(answer.request_id)
            yield answer


@pytest.fixture
def entry(model_folder: Path) -> ModelEntry:
    return tiny_entry(model_folder)


@pytest.fixture
def requests(draw_image: DrawImage) -> pa.Table:
    rows = []
    for seed in range(3):
        ref = draw_image(seed)
        shared = {"shard": 0, "sample_id": f"s{seed}", "image": ref.path}
        shared["image_sha256"] = ref.sha256
        rows += [
            {
                **shared,
                "request_id": f"{seed}/{q}",
                "text": q,
                "mode": "score",
                "label_set": "yes_no",
            }
            for q in QUESTIONS
        ]
        rows.append(
            {
                **shared,
                "request_id": f"{seed}/caption",
                "text": "Describe the image.",
                "mode": "generate",
                "max_new_tokens": 3,
            }
        )
    return pa.Table.from_pylist(rows, schema=REQUESTS.schema)


def answer(
    requests: pa.Table,
    entry: ModelEntry,
    store: Path,
    *,
    asked: list[str] | None = None,
    stop_after: int | None = None,
    **options: Any,
) -> ShardAnswers:
    notes = [] if asked is None else asked

    def opener(*args: Any, **more: Any) -> CountingEngine:
        return CountingEngine(notes, stop_after, *args, **more)

    return answer_shard(
        requests,
        options.pop("contexts", None),
        entry,
        LABELS,
        TEMPERATURES,
        store,
        device="cpu",
        open_engine=opener,
        **options,
    )


def test_responses_are_in_the_order_of_the_requests_and_fit_the_contract(
    requests: pa.Table, entry: ModelEntry, tmp_path: Path
) -> None:
    shuffled = requests.take(np.random.default_rng(3).permutation(len(requests)))

    answered = answer(shuffled, entry, tmp_path / "store")
    write_table(tmp_path / "0.parquet", answered.responses, RESPONSES, manifest=answered.manifest)
    rows = read_table(tmp_path / "0.parquet", RESPONSES).to_pylist()

    assert [row["request_id"] for row in rows] == shuffled["request_id"].to_pylist()
    for row in rows:
        if row["request_id"].endswith("caption"):
            assert row["text"] is not None
            assert row["logits"] is None
        else:
            assert len(row["logits"]) == 2
            assert len(row["logsumexp"]) == 2
            assert row["text"] is None
    assert answered.manifest["answers"] == {"stored": 0, "asked": 12}
    assert answered.manifest["inference_modes"] == {"packed": 12}
    assert answered.manifest["errors"] == 0
    assert set(answered.manifest["label_tokens"]) == {" Yes", " No"}
    assert answered.manifest["libraries"].keys() >= {"torch", "transformers"}


def test_a_second_run_asks_nothing_and_does_not_load_the_model(
    requests: pa.Table, entry: ModelEntry, tmp_path: Path
) -> None:
    first = answer(requests, entry, tmp_path)

    def refuse(*_: Any, **__: Any) -> Engine:
        raise AssertionError("the model was loaded")

    second = answer_shard(requests, None, entry, LABELS, TEMPERATURES, tmp_path, open_engine=refuse)

    assert second.responses.equals(first.responses)
    assert second.manifest["answers"] == {"stored": 12, "asked": 0}


def test_an_interrupted_shard_goes_on_where_it_stopped(
    requests: pa.Table, entry: ModelEntry, tmp_path: Path
) -> None:
    whole = answer(requests, entry, tmp_path / "undisturbed").responses
    before: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        answer(requests, entry, tmp_path / "store", asked=before, stop_after=7, batch_size=2)

    after: list[str] = []
    resumed = answer(requests, entry, tmp_path / "store", asked=after, batch_size=2)

    assert len(before) == 7
    assert sorted(before + after) == sorted(requests["request_id"].to_pylist())
    assert resumed.manifest["answers"] == {"stored": 7, "asked": 5}
    for found, expected in zip(resumed.responses.to_pylist(), whole.to_pylist(), strict=True):
        assert found["text"] == expected["text"]
        if expected["logits"] is not None:
            np.testing.assert_allclose(found["logits"], expected["logits"], atol=1e-5)


def test_a_killed_process_loses_only_what_was_not_flushed(
    requests: pa.Table, entry: ModelEntry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A killed process never leaves the `with` block, so that nothing is flushed at its end.
    monkeypatch.setattr(shard_module.AnswerStore, "__exit__", lambda *_: None)
    with pytest.raises(KeyboardInterrupt):
        answer(requests, entry, tmp_path, stop_after=7, batch_size=2, flush_seconds=0)
    monkeypatch.undo()

    resumed = answer(requests, entry, tmp_path)

    assert resumed.manifest["answers"] == {"stored": 7, "asked": 5}


def test_a_changed_list_of_questions_asks_only_the_new_ones(
    requests: pa.Table, entry: ModelEntry, tmp_path: Path
) -> None:
    answer(requests.slice(0, 4), entry, tmp_path)
    asked: list[str] = []

    answer(requests, entry, tmp_path, asked=asked)

    assert sorted(asked) == sorted(requests["request_id"].to_pylist()[4:])


def test_equal_questions_are_asked_once(
    requests: pa.Table, entry: ModelEntry, tmp_path: Path
) -> None:
    twin = requests.set_column(
        0, "request_id", pa.array([f"twin/{name}" for name in requests["request_id"].to_pylist()])
    )
    asked: list[str] = []

    answered = answer(pa.concat_tables([requests, twin]), entry, tmp_path, asked=asked).responses

    assert len(asked) == 12
    assert answered["logits"].to_pylist()[:12] == answered["logits"].to_pylist()[12:]


def test_answers_of_another_revision_are_never_used(
    requests: pa.Table, entry: ModelEntry, tmp_path: Path
) -> None:
    answer(requests, entry, tmp_path / "store")
    write_model(tmp_path / "changed", seed=1)

    changed = answer(requests, tiny_entry(tmp_path / "changed"), tmp_path / "store")

    assert changed.manifest["answers"] == {"stored": 0, "asked": 12}


@pytest.mark.parametrize("setting", [{"attention": "eager"}, {"image_backend": "pil"}])
def test_answers_under_other_settings_are_kept_apart(
    requests: pa.Table, entry: ModelEntry, tmp_path: Path, setting: dict[str, str]
) -> None:
    answer(requests, entry, tmp_path)

    other = answer(requests, replace(entry, **setting), tmp_path)

    assert other.manifest["answers"] == {"stored": 0, "asked": 12}


def test_an_error_is_a_row_with_its_sentence_and_is_asked_again(
    requests: pa.Table, entry: ModelEntry, tmp_path: Path
) -> None:
    gone = Path(requests["image"][0].as_py())
    content = gone.read_bytes()
    gone.unlink()

    first = answer(requests, entry, tmp_path)
    rows = first.responses.to_pylist()

    assert first.manifest["errors"] == 4
    assert [row["error"] is not None for row in rows] == [True] * 4 + [False] * 8
    assert "cannot be read: No such file" in rows[0]["error"]
    assert rows[0]["logits"] is None

    gone.write_bytes(content)
    second = answer(requests, entry, tmp_path)

    assert second.manifest["answers"] == {"stored": 8, "asked": 4}
    assert second.manifest["errors"] == 0


def test_demonstrations_change_the_answer(
    requests: pa.Table, entry: ModelEntry, tmp_path: Path, draw_image: DrawImage
) -> None:
    shown = draw_image(9)
    contexts = conform(
        pa.Table.from_pylist(
            [
                {"context_id": "c", "turn": 0, "role": "user", "text": "Describe the image.",
                 "image": shown.path, "image_sha256": shown.sha256},
                {"context_id": "c", "turn": 1, "role": "assistant", "text": "The nurse."},
            ]
        ),
        CONTEXTS,
    )  # fmt: skip
    place = requests.column_names.index("context_id")
    with_context = requests.set_column(
        place, "context_id", pa.array(["c"] * len(requests)).dictionary_encode()
    )

    plain = answer(requests, entry, tmp_path).responses.to_pylist()
    shots = answer(with_context, entry, tmp_path, contexts=contexts).responses.to_pylist()

    # "USER: <image> ... " once more: 9 patches and the words of the demonstration.
    assert all(
        few["prompt_tokens"] > zero["prompt_tokens"] + 9
        for few, zero in zip(shots, plain, strict=True)
    )
    assert np.abs(np.subtract(shots[0]["logits"], plain[0]["logits"])).max() > 1e-4


def test_a_tokenizer_that_disagrees_with_the_paper_stops_before_the_model_is_loaded(
    requests: pa.Table, entry: ModelEntry, tmp_path: Path
) -> None:
    asked: list[str] = []

    with pytest.raises(ModelError, match=r"and the paper states 3 \('<image>'\)"):
        answer(requests, replace(entry, yes_id=3), tmp_path, asked=asked)

    assert asked == []


def test_an_engine_that_leaves_questions_out_is_found(
    requests: pa.Table, entry: ModelEntry, tmp_path: Path
) -> None:
    class Forgetful(CountingEngine):
        def generate(self, queries: Iterable[Query]) -> Iterator[Answer]:
            return iter(())

    with pytest.raises(InferenceError, match=r"left 3 of 12 questions unanswered. Run again"):
        answer_shard(
            requests,
            None,
            entry,
            LABELS,
            TEMPERATURES,
            tmp_path,
            open_engine=lambda *a, **o: Forgetful([], None, *a, **o),
        )


def test_the_same_shard_twice_gives_the_same_bytes(
    requests: pa.Table, entry: ModelEntry, tmp_path: Path
) -> None:
    first = answer(requests, entry, tmp_path / "a").responses
    second = answer(requests, entry, tmp_path / "b").responses

    assert first.equals(second)


def answer_in_process(requests: pa.Table, model_folder: str, store: str) -> pa.Table:
    """What a job does; entries do not travel between processes, their folder's name does."""
    entry = tiny_entry(Path(model_folder))
    options: dict[str, Any] = {"device": "cpu", "flush_seconds": 0}
    return answer_shard(requests, None, entry, LABELS, TEMPERATURES, store, **options).responses


def test_two_processes_on_one_shard_at_once_give_the_same_answers(
    requests: pa.Table, entry: ModelEntry, tmp_path: Path
) -> None:
    # Given a scheduler that started a job a second time while the first one was still running.
    context = multiprocessing.get_context("spawn")
    arguments = (requests, entry.path, str(tmp_path / "store"))
    with context.Pool(2) as pool:
        waiting = [pool.apply_async(answer_in_process, arguments) for _ in range(2)]
        one, other = (job.get(timeout=120) for job in waiting)

    assert one.equals(other)
    third = answer(requests, entry, tmp_path / "store")
    assert third.manifest["answers"] == {"stored": 12, "asked": 0}
    assert third.manifest["skipped_store_parts"] == []


def test_a_shorter_context_applies_to_stored_answers_too(
    requests: pa.Table, entry: ModelEntry, tmp_path: Path
) -> None:
    answer(requests, entry, tmp_path)

    short = answer(requests, replace(entry, context_length=16), tmp_path).responses

    assert all("the context of tiny has 16" in str(error) for error in short["error"].to_pylist())
    assert short["logits"].null_count == len(short)


def test_a_store_that_cannot_be_written_is_found_before_anything_is_computed(
    requests: pa.Table, entry: ModelEntry, tmp_path: Path
) -> None:
    # Given a file where the folder should be, which stops root as well as a missing permission.
    (tmp_path / "store").write_text("")
    asked: list[str] = []

    with pytest.raises(InferenceError, match=r"the answer store .* cannot be written \(.*name an"):
        answer(requests, entry, tmp_path / "store", asked=asked)

    assert asked == []


def test_the_manifest_says_how_answers_were_computed(
    requests: pa.Table, entry: ModelEntry, tmp_path: Path
) -> None:
    engine = answer(requests, entry, tmp_path).manifest["engine"]

    assert engine["tokens_computed"] < engine["tokens_asked"]
    assert [check["mode"] for check in engine["self_checks"]] == ["packed", "packed"]
    assert all(check["errors"]["packed"] <= 1e-5 for check in engine["self_checks"])
    assert engine["out_of_memory"] == []
