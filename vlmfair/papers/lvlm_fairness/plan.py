"""Requests about FACET and UTKFace: each prompt asked about each image (section 3.3, A.1, A.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from vlmfair.contracts import REQUESTS, conform
from vlmfair.errors import ConfigError, ContractError
from vlmfair.inference.sharding import shard_count
from vlmfair.models.registry import ModelEntry
from vlmfair.papers.lvlm_fairness.questions import OCCUPATIONS, Prompts
from vlmfair.provenance import content_id

WORD = pa.dictionary(pa.int32(), pa.string())
# Everything of a request that repeats from row to row; ids and numbers do not.
_WORDS = (
    *("sample_id", "image", "image_sha256", "image_transform", "text", "assistant_prefix"),
    *("mode", "experiment", "prompt", "occupation", "truth", "rendering"),
)
# Appendix A.4: under 25, 25 to 65, over 65 years.
_YOUNG, _OLD = 25, 65


def plan_facet(
    samples: pa.Table,
    prompts: Prompts,
    entry: ModelEntry,
    *,
    style: str,
    prompt_ids: Sequence[str],
    images_per_shard: int,
    max_new_tokens: int,
) -> pa.Table:
    """Return one request per person of known gender and prompt, in that order, sorted by shard.

    `samples` follows the SAMPLES contract; people of other occupations are left out. A single
    choice asks about the image's own class, so that Yes is right. The result is a REQUESTS table
    with `experiment`, `prompt`, `occupation`, `truth` (the right answer) and `rendering`. Raises
    ConfigError on an unknown prompt or style, ContractError when no image is left.
    """
    people = evaluated_people(samples)
    asked = [
        (row, prompt, prompts.user_text(entry.family, style, prompt, row["occupation"]))
        for row in people
        for prompt in prompt_ids
    ]
    return make_requests(
        asked,
        prompts,
        entry,
        experiment="facet",
        style=style,
        images_per_shard=images_per_shard,
        max_new_tokens=max_new_tokens,
    )


def evaluated_people(samples: pa.Table) -> list[dict[str, str]]:
    """Return whom the paper evaluates: 13 occupations of FACET, known gender presentation."""
    rows: list[dict[str, str]] = samples.to_pylist()
    return [
        row
        for row in rows
        if row["gender"] in ("Male", "Female") and row["occupation"] in OCCUPATIONS
    ]


def plan_utkface(
    samples: pa.Table,
    prompts: Prompts,
    entry: ModelEntry,
    *,
    style: str,
    prompt_ids: Sequence[str],
    images_per_shard: int,
    max_new_tokens: int,
) -> pa.Table:
    """Return one request per image and attribute whose right answer is known, sorted by shard.

    `prompt_ids` are attributes that have a direct prompt (the paper: gender and race). The table
    is that of `plan_facet`. Raises ConfigError and ContractError as it does.
    """
    asked = []
    for row in samples.to_pylist():
        for prompt in prompt_ids:
            text = prompts.user_text(entry.family, style, prompt)
            if truth_of(row, prompt, prompts):
                asked.append((row, prompt, text))
    return make_requests(
        asked,
        prompts,
        entry,
        experiment="utkface",
        style=style,
        images_per_shard=images_per_shard,
        max_new_tokens=max_new_tokens,
    )


def truth_of(row: Mapping[str, str], prompt: str, prompts: Prompts) -> str:
    """Return the right answer to a prompt about a sample in the prompt's words, or "" if unknown.

    Years of age become young, middle and old as in appendix A.4.
    """
    if prompts.is_choice(prompt):
        return "Yes"
    value = (row["occupation" if prompt == "p1" else prompt] or "").strip()
    if prompt == "age" and value.isdigit():
        years = int(value)
        value = "young" if years < _YOUNG else "old" if years > _OLD else "middle"
    value = value if prompt == "p1" else value.lower()
    return value if value in prompts.answers(prompt) else ""


def make_requests(
    asked: Sequence[tuple[Mapping[str, str], str, str]],
    prompts: Prompts,
    entry: ModelEntry,
    *,
    experiment: str,
    style: str,
    images_per_shard: int,
    max_new_tokens: int,
) -> pa.Table:
    """Return the requests table of (sample, prompt, text), rows of one image staying in one shard.

    Raises ContractError when nothing is asked, ConfigError on numbers that are not positive.
    """
    if not asked:
        raise ContractError(
            f"lvlm_fairness: {experiment} has nothing to ask. Check the samples and problems of "
            f"its dataset, and that lvlm_fairness lists prompts for it."
        )
    if max_new_tokens < 1:
        raise ConfigError(
            f"lvlm_fairness: max_new_tokens is {max_new_tokens}. "
            f"Write at least 1; the paper has 512."
        )
    rendering = prompts.rendering(entry.family, style)
    image_number = {
        key: n for n, key in enumerate(dict.fromkeys(r["sample_id"] for r, *_ in asked))
    }
    shard_count(len(image_number), images_per_shard)
    rows = []
    for sample, prompt, text in asked:
        transform = entry.image_transforms.get(sample["dataset"], "none")
        direct = prompt in prompts.direct or prompts.is_choice(prompt)
        identity = (rendering, text, "generate", str(max_new_tokens))
        rows.append(
            {
                "request_id": content_id(
                    sample["sample_id"], sample["image_sha256"], transform, prompt, *identity
                ),
                "shard": image_number[sample["sample_id"]] // images_per_shard,
                "sample_id": sample["sample_id"],
                "image": sample["image"],
                "image_sha256": sample["image_sha256"],
                "image_transform": transform,
                "text": text,
                "assistant_prefix": "",
                "mode": "generate",
                "max_new_tokens": max_new_tokens,
                "experiment": experiment,
                "prompt": prompt,
                "occupation": sample["occupation"] or "",
                "truth": truth_of(sample, prompt, prompts) if direct else "",
                "rendering": rendering,
            }
        )
    return as_requests(rows)


def as_requests(rows: Sequence[Mapping[str, object]]) -> pa.Table:
    """Return rows as a REQUESTS table, what repeats as dictionary columns."""
    columns = {}
    for name in rows[0]:
        values = pa.array([row[name] for row in rows])
        columns[name] = values.cast(pa.string()).dictionary_encode() if name in _WORDS else values
    return conform(pa.table(columns), REQUESTS)
