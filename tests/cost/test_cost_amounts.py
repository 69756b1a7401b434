"""Amounts of work against what the engine's own meter counted, and against counts by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from vlmfair.bench.recorded_tokens import IMAGE_ID, load_token_ids, prompt_texts
from vlmfair.cost.amounts import Amounts, Turns, of_group, unique_tokens, with_contexts
from vlmfair.cost.architecture import architecture_in, load_architectures
from vlmfair.cost.estimate import reading_flops, writing_flops
from vlmfair.cost.image_tokens import ImageLoad
from vlmfair.cost.parts import Part
from vlmfair.cost.tokens import IMAGE, EstimatedTokenizer, tokenizer_in
from vlmfair.models.registry import load_registry

# `snakemake bench` (docs/performance.md): torch's counter on the meta device, in 10^12.
GRAS_PLAIN, GRAS_OURS = 4395.6, 105.86
ICL_PLAIN, ICL_OURS, ICL_TOKENS = 5858.2, 693.9, 2997


def part_of(amounts: Amounts, image: ImageLoad) -> Part:
    return Part("gras", "all", "model", image, amounts, True, False)


def test_gras_on_llava_costs_what_the_meter_counts(root: Path) -> None:
    resources = root / "resources"
    layers = load_architectures(resources / "cost/architectures.yaml")["llava-1.5-7b"]
    texts = prompt_texts(resources)["gras_paper"]
    recorded = load_token_ids(resources / "bench/llava_tokens.json", "gras_paper", texts)
    prompts = [
        [(IMAGE, 576) if token == IMAGE_ID else (str(token), 1) for token in ids]
        for ids in recorded
    ]

    part = part_of(of_group(prompts, 0, "prefix"), ImageLoad(576, 1, 577))

    assert reading_flops(part, layers, plain=True) / 1e12 == pytest.approx(GRAS_PLAIN, rel=0.01)
    assert reading_flops(part, layers, plain=False) / 1e12 == pytest.approx(GRAS_OURS, rel=0.03)


def test_captions_behind_demonstrations_cost_what_the_meter_counts(root: Path) -> None:
    layers = load_architectures(root / "resources/cost/architectures.yaml")["qwen3-vl-8b"]
    # 300 tokens of an image of 640 x 480 pixels, 17 around it, 16 of a caption, 2 behind it.
    turns = Turns(begin=0, demonstration=335, query=317, answer=16)

    amounts = with_contexts(turns, queries=100, shots=[8], groups=1, sharing="prefix")

    assert turns.prompt(8) == ICL_TOKENS
    part = part_of(amounts, ImageLoad(300, 1, 1200))
    writing = writing_flops(part, layers)
    plain = reading_flops(part, layers, plain=True) + writing
    ours = reading_flops(part, layers, plain=False) + writing
    assert plain / 1e12 == pytest.approx(ICL_PLAIN, rel=0.03)
    assert ours / 1e12 == pytest.approx(ICL_OURS, rel=0.03)


def test_what_prompts_begin_with_counts_once() -> None:
    """Two questions of 4 tokens about an image of 10, of which 2 are the same; by hand."""
    image = (f"{IMAGE}0", 10)
    prompts = [
        [image, ("Is", 1), ("she", 1), ("kind", 1), ("?", 1)],
        [image, ("Is", 1), ("she", 1), ("rude", 1), ("?", 1)],
    ]

    assert unique_tokens(prompts) == 10 + 2 + 2 + 2
    shared = of_group(prompts, 3, "prefix")
    assert (shared.asked, shared.computed, shared.answered) == (28, 16, 6)
    assert (shared.images, shared.encoded) == (2, 1)
    # The beginning of 12 with itself; 4 tokens behind it, each with it and with one another.
    assert (shared.plain_pairs, shared.pairs) == (2 * 14**2, 12**2 + 4 * (12 + 4))
    images = of_group(prompts, 3, "images")
    assert (images.computed, images.encoded) == (28, 1)
    nothing = of_group(prompts, 3, "nothing")
    assert (nothing.computed, nothing.encoded) == (28, 2)


def test_demonstrations_are_computed_once_for_all_queries_and_shots() -> None:
    turns = Turns(begin=1, demonstration=20, query=10, answer=0)

    shared = with_contexts(turns, queries=5, shots=[2, 4], groups=3, sharing="prefix")
    retrieved = with_contexts(
        turns, queries=5, shots=[2, 4], groups=3, sharing="prefix", retrieved=True
    )

    assert shared.requests == retrieved.requests == 3 * 5 * 2
    assert shared.asked == retrieved.asked == 3 * 5 * (51 + 91)
    assert shared.computed == 3 * (1 + 4 * 20) + 3 * 5 * 2 * 10
    assert shared.encoded == 3 * (4 + 5)
    assert retrieved.computed == retrieved.asked
    assert retrieved.encoded == retrieved.images == 3 * 5 * (3 + 5)


@pytest.mark.parametrize(("section", "within"), [("gras_paper", 0.03), ("gras_released", 0.03)])
def test_estimated_tokens_are_near_those_of_a_real_tokenizer(
    root: Path, section: str, within: float
) -> None:
    texts = prompt_texts(root / "resources")[section]
    recorded = load_token_ids(root / "resources/bench/llava_tokens.json", section, texts)
    estimated = EstimatedTokenizer()

    found = sum(len(estimated.tokens(f"<s>{text}")) for text in texts)

    assert found == pytest.approx(sum(map(len, recorded)), rel=within)


def test_rare_words_in_a_list_are_underestimated_by_a_tenth(root: Path) -> None:
    """FACET's prompts list 52 classes, many of them rare words."""
    texts = prompt_texts(root / "resources")["facet"]
    recorded = load_token_ids(root / "resources/bench/llava_tokens.json", "facet", texts)

    found = sum(len(EstimatedTokenizer().tokens(f"<s>{text}")) for text in texts)

    assert found / sum(map(len, recorded)) == pytest.approx(0.9, abs=0.03)


def test_a_model_that_is_there_is_counted_by_its_own_tokenizer_and_layers(root: Path) -> None:
    folder = root / "resources/demo/tiny-planted"

    tokenizer, layers = tokenizer_in(folder), architecture_in(folder)

    assert tokenizer.exact
    # The demo's tokenizer has no <s>; the whole prompt is in its vocabulary.
    text = "<s>USER: <image>\nIs the person honest? ASSISTANT:"
    assert tokenizer.tokens(text)[:4] == ["USER", ":", "Ġ", IMAGE]
    assert layers is not None
    # docs/demo.md: 1.9 million parameters.
    assert layers.parameters == pytest.approx(1.9e6, rel=0.05)
    assert not tokenizer_in(folder / "nowhere").exact
    assert architecture_in(folder / "nowhere") is None


def test_layers_of_the_catalogue_have_the_size_that_it_states(root: Path) -> None:
    layers = load_architectures(root / "resources/cost/architectures.yaml")

    for name, entry in load_registry(root / "config/models.yaml").items():
        # Weights of experts are stored in four bits.
        if entry.memory_gb and entry.kind == "vlm":
            size = 2 * layers[name].parameters / 1e9
            assert size == pytest.approx(entry.memory_gb, rel=0.2), name
