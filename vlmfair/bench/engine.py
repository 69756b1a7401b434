"""All figures of the inference engine against the plain form, measured in one run."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from vlmfair.bench.cpu_time import compare_facet, compare_gras
from vlmfair.bench.flops import floor_flops, our_flops, plain_flops
from vlmfair.bench.icl_time import SIZE as ICL_SIZE
from vlmfair.bench.icl_time import compare_icl
from vlmfair.bench.memory import compare_memory
from vlmfair.bench.real_models import caption_prompts, gras_prompts, llava_1_5_7b, qwen3_vl_8b
from vlmfair.bench.recorded_tokens import Ids, load_token_ids, prompt_texts
from vlmfair.bench.resume import measure_resume
from vlmfair.bench.small_llava import Size, write_small_llava

logger = logging.getLogger(__name__)

QUERIES, SHOTS, CAPTION_TOKENS = 100, 8, 16
CPU_QUESTIONS = 100
# Two whole batches of the way that is compared with.
MEMORY_QUESTIONS = 128


def run(resources: Path) -> dict[str, float]:
    """Return every figure of the engine; see docs/performance.md for how each is measured.

    Raises ConfigError when prompts have changed since their tokens were recorded.
    """
    texts = prompt_texts(resources)
    path = resources / "bench/llava_tokens.json"
    ids = {section: load_token_ids(path, section, texts[section]) for section in texts}
    questions = dict(zip(texts["gras_paper"], ids["gras_paper"], strict=True))
    facet = dict(zip(texts["facet"], ids["facet"], strict=True))
    with tempfile.TemporaryDirectory() as name:
        model, icl, shard = (Path(name, part) for part in ("model", "icl", "shard"))
        write_small_llava(model, Size())
        write_small_llava(icl, ICL_SIZE)
        shard.mkdir()
        parts: Sequence[Callable[[], Mapping[str, float]]] = (
            lambda: gras_flops(ids["gras_paper"], ids["gras_released"]),
            caption_flops,
            lambda: compare_gras(model, _first(questions, CPU_QUESTIONS)),
            lambda: compare_facet(model, facet),
            lambda: compare_icl(icl),
            lambda: compare_memory(model, _first(questions, MEMORY_QUESTIONS)),
            lambda: measure_resume(shard, resources),
        )
        figures: dict[str, float] = {}
        for part in parts:
            found = part()
            for key, value in found.items():
                logger.info("%s: %.4g", key, value)
            figures |= found
    return figures


def gras_flops(paper: Sequence[Ids], released: Sequence[Ids]) -> dict[str, float]:
    """Return the operations of GRAS's questions about one image to LLaVA-1.5-7B, and ratios.

    `gras_flops_ratio` is that of the prompt that the paper prints; the released one, whose runs of
    spaces are tokens behind each trait, is `gras_released_flops_ratio`.
    """
    metered = llava_1_5_7b()
    figures: dict[str, float] = {}
    over_floor = []
    for prefix, recorded in (("gras", paper), ("gras_released", released)):
        prompts = gras_prompts(recorded)
        plain, ours = plain_flops(metered, prompts), our_flops(metered, prompts)
        floor = floor_flops(metered, prompts)
        over_floor.append(ours / floor)
        figures[f"{prefix}_flops_ratio"] = plain / ours
        figures[f"{prefix}_flops_ratio_of_floor"] = plain / floor
        figures[f"{prefix}_plain_teraflops"] = plain / 1e12
        figures[f"{prefix}_teraflops"] = ours / 1e12
    return {**figures, "gras_flops_over_floor": max(over_floor)}


def caption_flops() -> dict[str, float]:
    """Return the operations of captions behind demonstrations with Qwen3-VL-8B, and their ratio."""
    metered = qwen3_vl_8b()
    prompts = caption_prompts(QUERIES, SHOTS, CAPTION_TOKENS)
    plain = plain_flops(metered, prompts, CAPTION_TOKENS)
    ours = our_flops(metered, prompts, CAPTION_TOKENS)
    return {
        f"icl_flops_ratio_k{SHOTS}": plain / ours,
        "icl_plain_teraflops": plain / 1e12,
        "icl_teraflops": ours / 1e12,
        "icl_prompt_tokens": float(len(prompts[0].ids)),
    }


def _first(recorded: Mapping[str, Ids], number: int) -> dict[str, Ids]:
    return dict(list(recorded.items())[:number])
