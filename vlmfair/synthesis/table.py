"""The tables of drawing: what is asked of a generator, and what became of each caption."""

from __future__ import annotations

import hashlib

import pyarrow as pa

from vlmfair.contracts import Contract

OK, REFUSED, UNIFORM, NOT_A_NUMBER, FAILED = "ok", "refused", "uniform", "not_a_number", "failed"
# What is no image: the pipeline's fault, not its decision.
FAULTS = (UNIFORM, NOT_A_NUMBER, FAILED)

PROMPTS = Contract(
    "prompts",
    pa.schema(
        [
            ("sample_id", pa.string()),
            ("gender", pa.string()),
            ("prompt", pa.string()),
            ("seed", pa.int64()),
            ("shard", pa.int32()),
        ]
    ),
    required=("sample_id", "gender", "prompt", "seed", "shard"),
    key=("sample_id",),
)

DRAWN = Contract(
    "drawn images",
    pa.schema(
        [
            ("sample_id", pa.string()),
            ("gender", pa.string()),
            ("prompt", pa.string()),
            ("seed", pa.int64()),
            ("generator", pa.string()),
            ("pipeline", pa.string()),
            ("source", pa.string()),
            ("weights", pa.string()),
            ("steps", pa.int32()),
            ("guidance", pa.float64()),
            ("true_guidance", pa.float64()),
            ("height", pa.int32()),
            ("width", pa.int32()),
            ("dtype", pa.string()),
            ("batch_size", pa.int32()),
            ("image", pa.string()),
            ("image_sha256", pa.string()),
            ("truncated", pa.bool_()),
            ("truncated_by", pa.string()),
            ("status", pa.string()),
            ("detail", pa.string()),
        ]
    ),
    required=("sample_id", "prompt", "seed", "generator", "truncated", "status"),
    key=("sample_id",),
)


def image_seed(run_seed: int, sample_id: str, prompt: str) -> int:
    """Return the seed of one image, below 2**63, from the run's seed, its sample and its caption.

    Two samples with the same caption are two images, as two photographs are.
    """
    text = "\x1f".join(("image", str(run_seed), sample_id, prompt))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1
