"""The worked example of one model that Figures 5 and 6 show, from its real answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from vlmfair.errors import ContractError
from vlmfair.papers.lvlm_fairness.questions import Prompts
from vlmfair.papers.lvlm_fairness.rationale import SubQuestions

Tables = Mapping[str, pa.Table]


def worked_example(
    requests: Tables,
    responses: Tables,
    judgements: Tables,
    prompts: Prompts,
    sub_questions: SubQuestions,
    *,
    model: str,
    prompt: str = "p2",
) -> dict[str, Any]:
    """Return an image whose answer turned to Yes with the rationale, with everything that was said.

    The tables are by experiment, `facet`, `sub_questions` (requests and responses only) and
    `rationale`, judged by one judge. Without such an image the first one answered in both is
    taken. Raises ContractError when there is none.
    """
    facet = _by_sample(requests["facet"], responses["facet"], judgements["facet"], prompt)
    final = _by_sample(
        requests["rationale"], responses["rationale"], judgements["rationale"], "final"
    )
    both = [
        s for s in final if s in facet and "error" not in (facet[s]["status"], final[s]["status"])
    ]
    if not both:
        raise ContractError(
            f"{model}: no image was answered with and without a rationale. "
            f"Look at the errors in the responses of facet and rationale."
        )
    turned = [s for s in both if _turned(facet[s], final[s])]
    chosen = (turned or both)[0]
    before, after = facet[chosen], final[chosen]
    return {
        "model": model,
        "sample_id": chosen,
        "image": before["image"],
        "occupation": before["occupation"],
        "question": prompts.text(prompt, before["occupation"]),
        "options": list(prompts.options.values()),
        "generation_prompt": prompts.generation_prompt(before["occupation"], prompt),
        "sub_questions": _sub_questions(
            requests, responses, chosen, sub_questions[before["occupation"]]
        ),
        "final_prompt": after["text"],
        "before": {"text": (before["answer"] or "").strip(), "predicted": before["predicted"]},
        "after": {"text": (after["answer"] or "").strip(), "predicted": after["predicted"]},
        "truth": "Yes",
        "judge": before["judge"],
        "improved": bool(turned),
    }


def _turned(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    return before["predicted"] != "Yes" and after["predicted"] == "Yes"


def _by_sample(
    requests: pa.Table, responses: pa.Table, judgements: pa.Table, prompt: str
) -> dict[str, dict[str, Any]]:
    answers = dict(zip(responses["request_id"].to_pylist(), responses["text"].to_pylist()))
    judged = {row["request_id"]: row for row in judgements.to_pylist()}
    rows = {}
    for row in requests.to_pylist():
        if row["prompt"] == prompt and row["request_id"] in judged:
            found = judged[row["request_id"]]
            rows[row["sample_id"]] = {
                **{name: row[name] for name in ("image", "occupation", "text")},
                **{name: found[name] for name in ("predicted", "status", "judge")},
                "answer": answers.get(row["request_id"]),
            }
    return rows


def _sub_questions(
    requests: Tables, responses: Tables, sample: str, questions: Sequence[str]
) -> list[dict[str, str]]:
    given = responses["sub_questions"]
    answers = dict(zip(given["request_id"].to_pylist(), given["text"].to_pylist()))
    errors = dict(zip(given["request_id"].to_pylist(), given["error"].to_pylist()))
    asked = [
        row["request_id"]
        for row in requests["sub_questions"].to_pylist()
        if row["sample_id"] == sample
    ]
    return [
        {
            "question": question,
            "answer": (answers[request] or "").strip(),
            "status": "error" if errors[request] else "ok",
        }
        for question, request in zip(questions, asked, strict=True)
    ]
