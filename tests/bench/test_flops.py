"""Operations counted without weights are those of real forwards, and meet the bars."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import DynamicCache

from vlmfair.bench.bars import BARS
from vlmfair.bench.flops import MeteredModel, floor_flops, our_flops, plain_flops, trie_places
from vlmfair.bench.meter import META, MeteredFamily
from vlmfair.bench.real_models import caption_prompts, gras_prompts, llava_1_5_7b, qwen3_vl_8b
from vlmfair.bench.recorded_tokens import load_token_ids, prompt_texts
from vlmfair.bench.small_llava import (
    Size,
    SmallLlava,
    load_small_llava,
    small_entry,
    write_small_llava,
)
from vlmfair.inference.engine import open_engine
from vlmfair.inference.prepare import Prepared, Preparer

BOUNDS = {bar.key: bar.bound for bar in BARS}
TINY = Size(hidden=32, layers=2, heads=2, vision_hidden=32, patches=3, vocabulary=32_064)
# "<s> <image> stem ... end", with the stem of the first two in common.
PROMPTS = {
    "a": (1, 32_000, 10, 11, 12, 13),
    "b": (1, 32_000, 10, 11, 14, 15, 13),
    "c": (1, 32_000, 20, 13),
}
GRAS_SECTIONS = ("gras_paper", "gras_released")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> SmallLlava:
    folder = tmp_path_factory.mktemp("small")
    write_small_llava(folder, TINY)
    small = load_small_llava(folder, PROMPTS)
    # Torch's counter knows the products of eager attention, but not all attention kernels of a CPU.
    small.model.set_attn_implementation("eager")
    return small


@pytest.fixture(scope="module")
def metered(small: SmallLlava) -> MeteredModel:
    with META:
        model = type(small.model)(small.model.config).eval()
    return MeteredModel("small", MeteredFamily(small.loaded.family, model), model)


def prepared(small: SmallLlava, new_tokens: int = 0) -> list[Prepared]:
    preparer = Preparer(small.loaded, small.renderer())
    found = [
        preparer.prepare(query, "any") for query in small.queries(small.draw_image(0), new_tokens)
    ]
    return [on_meta(item) for item in found if isinstance(item, Prepared)]


def on_meta(item: Prepared) -> Prepared:
    for image in item.images:
        tensors: Any = image.tensors
        tensors.update({name: tensor.to(META) for name, tensor in tensors.items()})
    return item


def counted(small: SmallLlava, mode: str, new_tokens: int, monkeypatch: Any) -> int:
    """Operations of the real engine with real weights."""
    monkeypatch.setattr(small.model.generation_config, "eos_token_id", -1)
    engine = open_engine(small.loaded, small.renderer(), model=small.model, mode=mode)
    queries = small.queries(small.draw_image(0), new_tokens)
    with FlopCounterMode(display=False) as counter:
        answers = engine.generate(queries) if new_tokens else engine.score(queries, (1.0,))
        assert len([answer for answer in answers if answer.error is None]) == len(PROMPTS)
    return counter.get_total_flops()


@pytest.mark.parametrize("new_tokens", [0, 4])
@pytest.mark.parametrize(("mode", "count"), [("full_forward", plain_flops), ("packed", our_flops)])
def test_the_count_without_weights_is_that_of_the_engine_with_weights(
    small: SmallLlava,
    metered: MeteredModel,
    mode: str,
    count: Callable[..., int],
    new_tokens: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = count(metered, prepared(small, new_tokens), new_tokens)

    assert found == counted(small, mode, new_tokens, monkeypatch)


def test_a_step_that_was_counted_before_counts_as_much_again(metered: MeteredModel) -> None:
    family, model = metered.family, metered.model

    def step(cache: DynamicCache) -> int:
        before = family.flops
        family.decode(
            model,
            embeddings=torch.empty((1, 5, 32), device=META),
            positions=torch.zeros((1, 1, 5), dtype=torch.long, device=META),
            mask=torch.zeros((1, 1, 5, 5 + cache.get_seq_length()), device=META),
            cache=cache,
        )
        return family.flops - before

    one, other = DynamicCache(), DynamicCache()
    first, second = [step(one), step(one)], [step(other), step(other)]

    assert first == second
    assert first[1] > first[0]  # it looks at the five tokens before
    assert one.get_seq_length() == other.get_seq_length() == 10


def test_the_floor_has_each_token_of_the_trie_once() -> None:
    # a, b share places 0 to 3 and c shares 0 and 1 with them.
    assert sorted(trie_places(list(PROMPTS.values()))) == [0, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6]


def test_the_floor_is_below_what_the_engine_computes(
    small: SmallLlava, metered: MeteredModel
) -> None:
    prompts = prepared(small)

    floor, ours = floor_flops(metered, prompts), our_flops(metered, prompts)

    assert floor < ours < plain_flops(metered, prompts)


def test_llava_1_5_7b_counts_what_its_sizes_say() -> None:
    # Per token and layer 4 x 4096^2 + 3 x 4096 x 11008 products, attention 2 x 4096 per pair.
    metered, tokens = llava_1_5_7b(num_hidden_layers=1), 600
    before = metered.family.flops
    metered.family.decode(
        metered.model,
        embeddings=torch.empty((1, tokens, 4096), device=META),
        positions=torch.zeros((1, 1, tokens), dtype=torch.long, device=META),
        mask=None,
        cache=DynamicCache(),
    )

    products = tokens * (4 * 4096**2 + 3 * 4096 * 11008) + tokens**2 * 2 * 4096
    assert metered.family.flops - before == 2 * products


def at_depth(
    model: Callable[..., MeteredModel],
    layers: int,
    count: Callable[[MeteredModel], Sequence[int]],
) -> list[float]:
    """Counts of a deep model from those of one and of two layers: all its layers are alike."""
    one, two = count(model(num_hidden_layers=1)), count(model(num_hidden_layers=2))
    return [first + (layers - 1) * (second - first) for first, second in zip(one, two, strict=True)]


@pytest.mark.slow
@pytest.mark.parametrize("section", GRAS_SECTIONS)
def test_gras_meets_its_bars(root: Path, section: str) -> None:
    texts = prompt_texts(root / "resources")[section]
    ids = load_token_ids(root / "resources/bench/llava_tokens.json", section, texts)
    prompts = gras_prompts(ids)

    plain, ours, floor = at_depth(
        llava_1_5_7b,
        32,
        lambda model: (
            plain_flops(model, prompts),
            our_flops(model, prompts),
            floor_flops(model, prompts),
        ),
    )

    assert ours / floor <= BOUNDS["gras_flops_over_floor"]
    if section == "gras_paper":
        assert plain / ours >= BOUNDS["gras_flops_ratio"]
    else:  # its runs of spaces stand behind each trait, so that no exact method reaches 38
        assert plain / floor < BOUNDS["gras_flops_ratio"]
        assert plain / ours >= 33


@pytest.mark.slow
def test_captions_behind_eight_demonstrations_meet_their_bar() -> None:
    prompts = caption_prompts(queries=100, shots=8, caption_tokens=16)

    plain, ours = at_depth(
        qwen3_vl_8b,
        36,
        lambda model: (plain_flops(model, prompts, 2), our_flops(model, prompts, 2)),
    )

    assert plain / ours >= BOUNDS["icl_flops_ratio_k8"]


def test_a_demonstration_has_an_image_an_instruction_and_a_caption() -> None:
    none, one = (caption_prompts(1, shots, 16)[0] for shots in (0, 1))

    # 300 tokens of an image of 640x480, 17 around it, the caption and two that end its turn.
    assert len(none.ids) == 300 + 17
    assert len(one.ids) - len(none.ids) == 300 + 17 + 16 + 2
    assert (len(none.images), len(one.images)) == (1, 2)
    assert small_entry(Path("model")).family == "llava"
