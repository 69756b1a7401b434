"""A shard of a served model: nothing paid for is lost or asked twice, and the key is nowhere."""

from __future__ import annotations

import io
import json
import logging
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import fake_api
import pyarrow as pa
import pytest
from fake_api import ENVIRON, KEY, Served, api_entry, completion
from tiny_llava import DrawImage

from vlmfair.contracts import REQUESTS, RESPONSES, write_table
from vlmfair.errors import InferenceError, ModelError
from vlmfair.inference.api_budget import Ledger
from vlmfair.inference.api_shard import answer_api_shard, api_identity
from vlmfair.inference.queries import CONTEXTS
from vlmfair.inference.responses import ShardAnswers
from vlmfair.inference.store import AnswerStore
from vlmfair.logs import rule_log

# 100 tokens asked at 2.5 and 10 answered at 10 for a million, as `fake_api.completion` states.
COST = 0.00035


def requests_of(*questions: str, **changes: Any) -> pa.Table:
    settings = {"shard": 0, "mode": "generate", "max_new_tokens": 16, **changes}
    rows = [
        {"request_id": f"r{place}", "sample_id": f"s{place}", "text": question, **settings}
        for place, question in enumerate(questions)
    ]
    return pa.Table.from_pylist(rows, schema=REQUESTS.schema)


def answer(
    requests: pa.Table, served: Served, store: Path, cap: float | None = None, **changes: Any
) -> ShardAnswers:
    entry = api_entry(served.base_url, **changes)
    labels = {"yes_no": ("Yes", "No")}
    return answer_api_shard(
        requests, None, entry, labels, (1.0,), store, money_cap=cap, environ=ENVIRON
    )


def test_a_text_only_judge_answers_once_and_then_from_the_store(
    served: Served, tmp_path: Path
) -> None:
    requests = requests_of("score a", "score b", "score a")

    first = answer(requests, served, tmp_path)
    # The key is not even looked up when nothing has to be asked.
    again = answer_api_shard(
        requests, None, api_entry(served.base_url), {}, (1.0,), tmp_path, environ={}
    )

    assert first.responses["text"].to_pylist() == ["SCORE A", "SCORE B", "SCORE A"]
    assert first.responses["request_id"].to_pylist() == ["r0", "r1", "r2"]
    assert sorted(served.requests) == ["score a", "score b"]
    assert again.responses.equals(first.responses)
    assert first.manifest["answers"] == {"stored": 0, "asked": 2}
    assert again.manifest["answers"] == {"stored": 2, "asked": 0}
    assert first.manifest["engine"]["spent"] == pytest.approx(2 * COST)
    assert first.manifest["engine"]["served_models"] == {"served-2024-11-20": 2}
    assert again.manifest["engine"] == {}
    assert again.manifest["spent_over_all_runs"] == pytest.approx(2 * COST)


def test_images_and_demonstrations_are_part_of_what_is_asked(
    served: Served, tmp_path: Path, draw_image: DrawImage
) -> None:
    one, other = draw_image(1), draw_image(2)
    image = {"image": one.path, "image_sha256": one.sha256}
    demonstration = {"context_id": "c", "image": other.path, "image_sha256": other.sha256}
    contexts = pa.Table.from_pylist(
        [
            {**demonstration, "turn": 0, "role": "user", "text": "Who?"},
            {"context_id": "c", "turn": 1, "role": "assistant", "text": "A nurse."},
        ],
        schema=CONTEXTS.schema,
    )
    rows = [
        {**image, "request_id": "plain"},
        {**image, "request_id": "shown", "context_id": "c"},
        {**image, "request_id": "resized", "image_transform": "resize:8x8"},
        {"request_id": "blind"},
        {**image, "request_id": "longer", "max_new_tokens": 32},
    ]
    shared = {"shard": 0, "sample_id": "s", "text": "Who?", "mode": "generate"}
    table = pa.Table.from_pylist(
        [{**shared, "max_new_tokens": 16, **row} for row in rows], schema=REQUESTS.schema
    )

    answered = answer_api_shard(
        table, contexts, api_entry(served.base_url), {}, (1.0,), tmp_path, environ=ENVIRON
    )

    assert answered.manifest["answers"] == {"stored": 0, "asked": 5}
    assert answered.responses["text"].to_pylist() == ["WHO?"] * 5
    shown = next(body for body in served.bodies if len(body["messages"]) == 3)
    assert [message["role"] for message in shown["messages"]] == ["user", "assistant", "user"]


@pytest.mark.parametrize(
    "changes",
    [
        {"api_model": "served-2024-08-06"},
        {"temperature": 0.7},
        {"seed": 1},
        {"revision": "0" * 40},
    ],
)
def test_other_settings_are_other_answers(
    served: Served, tmp_path: Path, changes: dict[str, Any]
) -> None:
    answer(requests_of("a"), served, tmp_path)
    answer(requests_of("a"), served, tmp_path, **changes)

    assert served.requests == ["a", "a"]


def test_patience_and_prices_do_not_change_answers(served: Served, tmp_path: Path) -> None:
    answer(requests_of("a"), served, tmp_path)
    answer(requests_of("a"), served, tmp_path, concurrency=9, price_input=1.0, timeout_seconds=9.0)

    assert served.requests == ["a"]


def test_scores_come_from_the_store_too(served: Served, tmp_path: Path) -> None:
    rows = [{"token": "Yes", "logprob": -0.25}, {"token": "Not", "logprob": -2.0}]
    served.always = fake_api.reply(
        completion("Yes", logprobs={"content": [{"token": "Yes", "top_logprobs": rows}]})
    )
    requests = requests_of("sure?", mode="score", label_set="yes_no", max_new_tokens=None)

    first = answer(requests, served, tmp_path, top_logprobs=2)
    again = answer(requests, served, tmp_path, top_logprobs=2)

    assert first.responses["logits"].to_pylist() == [[-0.25, -100.0]]
    assert again.responses.equals(first.responses)
    assert served.requests == ["sure?"]
    assert first.manifest["engine"]["labels_never_listed"] == ["No"]
    assert first.manifest["label_tokens"] == {"Yes": [0], "No": [1]}


def test_refusals_are_kept_and_errors_and_silence_are_asked_again(
    served: Served, tmp_path: Path
) -> None:
    served.reactions = {
        "rude": [fake_api.reply(completion(None, reason="content_filter"))],
        "odd": [fake_api.error(400, "too small")],
        "silent": [fake_api.reply(completion(" "))],
    }
    requests = requests_of("rude", "odd", "silent")

    first = answer(requests, served, tmp_path)
    again = answer(requests, served, tmp_path)

    assert first.responses["finish_reason"].to_pylist() == ["refused", None, "stop"]
    assert first.responses["text"].to_pylist() == ["", None, " "]
    assert first.manifest["errors"] == 1
    assert again.responses["text"].to_pylist() == ["", "ODD", "SILENT"]
    assert sorted(served.requests) == ["odd", "odd", "rude", "silent", "silent"]


def test_the_cap_stops_asking_and_says_how_many_are_left(served: Served, tmp_path: Path) -> None:
    questions = [f"question {number}" for number in range(10)]
    # The server counts 100 tokens asked, and the question may be answered with 16.
    dearest = (100 * 2.5 + 16 * 10) / 1e6
    cap = 4 * COST + dearest + 1e-6

    with pytest.raises(InferenceError) as caught:
        answer(requests_of(*questions), served, tmp_path, cap, concurrency=1)

    assert len(served.requests) == 5
    assert "5 questions are left, the other answers are stored" in str(caught.value)
    assert "the money cap of 0.001811 is reached: 0.00175 is spent" in str(caught.value)
    assert "Raise inference.money_cap in the config and run again" in str(caught.value)
    # Another run cannot spend the cap again; a higher cap goes on where it stopped.
    with pytest.raises(InferenceError, match="is reached"):
        answer(requests_of(*questions), served, tmp_path, cap)
    assert len(served.requests) == 5
    finished = answer(requests_of(*questions), served, tmp_path, 1.0)
    assert sorted(served.requests) == sorted(questions)
    assert finished.manifest["spent_over_all_runs"] == pytest.approx(10 * COST)


def test_the_cap_holds_with_many_questions_at_a_time(served: Served, tmp_path: Path) -> None:
    served.always = fake_api.after(0.01)
    questions = [f"question {number}" for number in range(60)]

    with pytest.raises(InferenceError, match="is reached"):
        answer(requests_of(*questions), served, tmp_path, 0.01, concurrency=16)

    assert len(served.requests) * COST <= 0.01
    assert len(served.requests) >= 25


def test_what_may_have_been_charged_counts_and_what_was_not_does_not(
    served: Served, tmp_path: Path
) -> None:
    served.reactions = {"lost": [fake_api.truncate], "busy": [fake_api.error(503)] * 3}

    spent = answer(requests_of("lost", "busy"), served, tmp_path).manifest["engine"]["spent"]

    # 'lost': 2 bytes of text per token, 50 beside it, 16 answered: (2 + 50) * 2.5 + 16 * 10.
    assert spent == pytest.approx(2 * COST + 0.00029)


def test_a_server_without_prices_knows_no_cap(served: Served, tmp_path: Path) -> None:
    answered = answer(requests_of("a"), served, tmp_path, 0.0, price_input=0.0, price_output=0.0)

    assert answered.responses["text"].to_pylist() == ["A"]
    assert answered.manifest["spent_over_all_runs"] == 0


def test_a_ledger_with_a_damaged_line_still_counts_the_others(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ticket = ledger.open(0.5)
    assert ticket is not None
    ledger.settle(ticket, 0.25)
    assert ledger.open(1.0) is not None
    with (tmp_path / "spending.jsonl").open("a") as file:
        file.write('{"id": "x", "cost"')

    # The second question was never settled: a killed run, which counts with its highest price.
    assert Ledger(tmp_path).spent == pytest.approx(1.25)
    assert Ledger(tmp_path, cap=2.0).open(0.8) is None


def test_two_jobs_at_a_time_pay_for_each_question_once(served: Served, tmp_path: Path) -> None:
    served.always = fake_api.after(0.02)
    questions = [f"question {number}" for number in range(12)]
    results: list[ShardAnswers] = []
    jobs = [
        threading.Thread(
            target=lambda: results.append(answer(requests_of(*questions), served, tmp_path))
        )
        for _ in range(2)
    ]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join(timeout=20)

    assert sorted(served.requests) == sorted(questions)
    assert served.most_at_once <= 4
    assert results[0].responses.equals(results[1].responses)


JOB = """
    import json, sys
    import pyarrow as pa
    from fake_api import KEY, KEY_VARIABLE, api_entry
    from vlmfair.inference.api_shard import answer_api_shard
    url, store, rows = sys.argv[1:]
    entry, table = api_entry(url, concurrency=3), pa.Table.from_pylist(json.loads(rows))
    answer_api_shard(table, None, entry, {}, (1.0,), store, environ={KEY_VARIABLE: KEY})
"""


@pytest.mark.slow
def test_a_killed_job_loses_nothing_that_it_was_given(
    served: Served, tmp_path: Path, root: Path
) -> None:
    served.always = fake_api.after(0.03)
    questions = [f"question {number}" for number in range(30)]
    folders = [root, root / "tests"]
    rows = json.dumps(requests_of(*questions).to_pylist())
    job = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(JOB), served.base_url, str(tmp_path), rows],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))},
        cwd=tmp_path,
    )
    deadline = time.monotonic() + 60
    while len(served.answered) < 10 and time.monotonic() < deadline:
        time.sleep(0.005)
    job.send_signal(signal.SIGKILL)
    job.wait()
    time.sleep(0.1)
    received = served.requests.copy()
    assert 10 <= len(received) < 30

    finished = answer(requests_of(*questions), served, tmp_path)

    assert finished.responses["text"].to_pylist() == [text.upper() for text in questions]
    asked_twice = {text for text in questions if served.requests.count(text) > 1}
    # Only what was under way at that moment, at most `concurrency` questions.
    assert len(asked_twice) <= 3
    assert finished.manifest["answers"]["stored"] >= len(received) - 3
    # The open questions of the killed job count with the most they may have cost.
    assert finished.manifest["spent_over_all_runs"] >= 30 * COST - 1e-9


def test_a_damaged_journal_costs_only_its_damaged_line(served: Served, tmp_path: Path) -> None:
    answer(requests_of("a"), served, tmp_path)
    folder = tmp_path / AnswerStore(tmp_path, api_identity(api_entry(served.base_url))).digest
    key = "00" * 16
    lines = [json.dumps({"key": key, "text": "kept", "inference_mode": "api"}), '{"key": "0', "[]"]
    (folder / "journal.jsonl").write_text("\n".join(lines))

    answer(requests_of("a"), served, tmp_path)

    assert served.requests == ["a"]
    assert (folder / "journal.jsonl").read_bytes() == b""
    store = AnswerStore(tmp_path, api_identity(api_entry(served.base_url)))
    assert store.find([bytes.fromhex(key)])["text"].to_pylist() == ["kept"]


def test_the_key_is_in_no_file_log_or_message(
    served: Served, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    served.reactions = {
        "echo": [fake_api.reply(completion(f"Your key: {KEY}"))],
        "odd": [fake_api.error(400, f"bad key {KEY}")],
        "busy": [fake_api.error(503, f"key {KEY} is throttled")],
        "lost": [fake_api.reset],
        "locked": [fake_api.error(401, f"Incorrect API key provided: {KEY}")],
    }
    caught = io.StringIO()
    handler = logging.StreamHandler(caught)
    logging.getLogger().addHandler(handler)
    try:
        with rule_log(tmp_path / "log.txt"):
            logging.getLogger().setLevel(logging.DEBUG)
            answered = answer(requests_of("echo", "odd", "busy", "lost"), served, tmp_path)
            write_table(
                tmp_path / "0.parquet", answered.responses, RESPONSES, manifest=answered.manifest
            )
        with pytest.raises(SystemExit), rule_log(tmp_path / "stopped.txt"):
            answer(requests_of("locked"), served, tmp_path)
    finally:
        logging.getLogger().removeHandler(handler)
        logging.getLogger().setLevel(logging.WARNING)

    assert answered.responses["text"].to_pylist() == ["Your key: <key>", None, "BUSY", "LOST"]
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} >= {".txt", ".parquet", ".json", ".jsonl"}
    assert "does not accept the key" in (tmp_path / "stopped.txt").read_text()
    # Parquet pages are compressed, so their texts are looked at as well.
    seen = b"".join(path.read_bytes() for path in files).decode("latin-1")
    seen += repr(answered.responses.to_pylist()) + caught.getvalue() + "".join(capfd.readouterr())
    assert KEY not in seen
    assert served.headers[0]["authorization"] == f"Bearer {KEY}"


def test_an_entry_without_a_server_is_refused(served: Served, tmp_path: Path) -> None:
    local = api_entry(served.base_url)
    object.__setattr__(local, "api", None)

    with pytest.raises(ModelError, match="the entry names no server"):
        answer_api_shard(requests_of("a"), None, local, {}, (1.0,), tmp_path, environ=ENVIRON)
