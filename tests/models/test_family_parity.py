"""Each family's decode path gives what the stock model's own full forward gives.

The stock processor makes the inputs of the stock forward; ours are rendered, expanded and decoded
piece by piece. Probabilities of all positions are compared, in float32.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from tiny_models import EAGER, FAMILIES, SINGLE_IMAGE, tiny_entry
from transformers import DynamicCache

from vlmfair.models.chat import ChatRenderer, ImageRef, Turn
from vlmfair.models.families.base import ImageFeatures, ImageInputs
from vlmfair.models.loading import LoadedProcessor, load_model, load_processor

TOLERANCE = 1e-5
# Wide, upright and square; each family cuts or scales them in its own way.
SIZES = ((44, 30), (25, 50), (32, 32))
QUESTION = "Is the person in the image honest?"
Load = Callable[[str], tuple[LoadedProcessor, Any]]
Prepare = Callable[[str, int], "Case"]

CASES = [
    (family, number)
    for family in FAMILIES
    for number in (0, 1, 3)
    if number <= 1 or family not in SINGLE_IMAGE
]
# Prompts that cannot share a prefix; tests/models/test_family_obstacles.py has the reasons. Three
# images of Phi-4 pass the length at which its rotary frequencies change.
UNSHARED = {
    ("mllama", 3),
    ("phi4_multimodal", 3),
    *((name, n) for name, n in CASES if name == "paligemma"),
}
# Tokens before Mllama's first image see all images: only whole forwards can do that.
DECODED = [case for case in CASES if case != ("mllama", 3)]
SHARED = [case for case in CASES if case not in UNSHARED]


def draw(seed: int) -> Image.Image:
    width, height = SIZES[seed % len(SIZES)]
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(pixels)


def conversation(number: int) -> list[Turn]:
    """Demonstrations with one image each, then the question."""
    ref = ImageRef("noise.png", "0" * 64)
    if number <= 1:
        return [Turn("user", QUESTION, (ref,) * number)]
    turns = []
    for answer in ("The nurse and his patient.", "The nurse and her patient."):
        turns += [Turn("user", "Describe the image.", (ref,)), Turn("assistant", answer)]
    return [*turns, Turn("user", QUESTION, (ref,))]


@dataclasses.dataclass
class Case:
    """One prompt, once as the stock classes see it and once as the families' interface does."""

    loaded: LoadedProcessor
    model: Any
    images: list[ImageInputs]
    ids: list[int]
    stock: dict[str, Any]

    @property
    def family(self) -> Any:
        return self.loaded.family

    def features(self) -> list[ImageFeatures]:
        return self.family.encode_images(self.model, self.images) if self.images else []

    @functools.cached_property
    def stock_logits(self) -> torch.Tensor:
        """Logits [tokens, vocabulary] of the stock forward."""
        with torch.inference_mode():
            if "pixel_values" not in self.stock and self.family.name == "blip2":
                return self.model.language_model(self.stock["input_ids"]).logits[0]
            return self.model(**self.stock).logits[0]


@pytest.fixture(scope="module")
def prepare(load_tiny: Load) -> Callable[[str, int], Case]:
    return functools.cache(functools.partial(make_case, load_tiny))


def make_case(load_tiny: Load, family: str, number: int) -> Case:
    loaded, model = load_tiny(family)
    drawn = [draw(seed) for seed in range(number)]
    is_raw = loaded.family.rendering == "raw"
    refs = (ImageRef("noise.png", "0" * 64),) * number
    turns = [Turn("user", QUESTION, refs)] if is_raw else conversation(number)
    renderer = ChatRenderer(loaded.processor, loaded.family, "tiny")
    prompt = renderer.render(turns)
    images = [loaded.family.process_image(loaded.processor, image) for image in drawn]
    ids = renderer.expand(prompt, tuple(image.replacement for image in images))
    if family == "paligemma" and number == 0:
        # Its processor wants an image; what it writes behind images is the text-only prompt.
        row = torch.tensor([loaded.processor.tokenizer(f"<bos>{QUESTION}\n")["input_ids"]])
        inputs = {"input_ids": row, "token_type_ids": torch.zeros_like(row)}
    else:
        text = QUESTION if is_raw else prompt.text
        options = {} if is_raw or prompt.adds_special_tokens else {"add_special_tokens": False}
        # Some processors take the images of one prompt as a row of a list.
        nested = family in {"paligemma", "idefics3", "mllama"}
        shown: Any = [drawn] if drawn and nested else drawn
        inputs = dict(
            loaded.processor(images=shown or None, text=text, return_tensors="pt", **options)
        )
        inputs.pop("labels", None)
    return Case(loaded, model, images, list(ids), inputs)


def decoded(case: Case, pieces: Sequence[int]) -> torch.Tensor:
    """Hidden states of the prompt, decoded in consecutive pieces over one growing cache."""
    family, model = case.family, case.model
    with torch.inference_mode():
        features = case.features()
        ids = torch.tensor(case.ids)
        embeddings = family.embed(model, ids)
        is_image = (ids == family.image_token_id(model)) & bool(features)
        layers: list[torch.Tensor] = []
        if features:
            embeddings = embeddings.clone()
            embeddings[is_image] = torch.cat([image.embeddings for image in features])
            layers = [torch.cat(rows) for rows in zip(*(image.layers for image in features))]
        positions = family.positions(model, case.ids, case.images)
        cache, parts, start = DynamicCache(), [], 0
        for length in pieces:
            stop = start + length
            marked = is_image[start:stop]
            before = int(is_image[:start].sum())
            rows = slice(before, before + int(marked.sum()))
            parts.append(
                family.decode(
                    model,
                    embeddings=embeddings[None, start:stop],
                    positions=positions[:, None, start:stop],
                    mask=None if start == 0 else causal_mask(start, stop),
                    cache=cache,
                    image_rows=marked[None] if marked.any() else None,
                    layers=[layer[rows] for layer in layers] if marked.any() else [],
                )[0]
            )
            start = stop
        return torch.cat(parts)


def causal_mask(start: int, stop: int) -> torch.Tensor:
    allowed = torch.ones(stop, stop).tril().bool()[start:]
    mask = torch.zeros(stop - start, stop).masked_fill(~allowed, torch.finfo(torch.float32).min)
    return mask[None, None]


def probabilities(logits: torch.Tensor) -> torch.Tensor:
    return torch.softmax(logits.float(), dim=-1)


def distance(one: torch.Tensor, other: torch.Tensor) -> float:
    return float((one - other).abs().max())


@pytest.mark.parametrize(("family", "number"), CASES)
def test_expanded_ids_equal_the_processors(prepare: Prepare, family: str, number: int) -> None:
    case = prepare(family, number)

    assert case.ids == case.stock["input_ids"][0].tolist()
    assert len(case.ids) > 5


@pytest.mark.parametrize(("family", "number"), DECODED)
def test_a_prompt_decoded_whole_equals_the_full_forward(
    prepare: Prepare, family: str, number: int
) -> None:
    case = prepare(family, number)

    hidden = decoded(case, [len(case.ids)])
    with torch.inference_mode():
        found = probabilities(case.family.head(case.model, hidden))

    expected = probabilities(case.stock_logits)
    assert expected.max() < 0.999, "probabilities that are all 0 or 1 would hide a difference"
    assert distance(found, expected) <= TOLERANCE


@pytest.mark.parametrize(("family", "number"), SHARED)
def test_a_prefix_and_its_suffix_equal_the_whole(
    prepare: Prepare, family: str, number: int
) -> None:
    case = prepare(family, number)
    assert case.family.obstacle(case.model, len(case.ids), number) is None
    # The last image ends before the question, whose last 8 tokens are the suffix in two steps.
    pieces = [len(case.ids) - 8, 5, 3]

    hidden = decoded(case, pieces)
    with torch.inference_mode():
        found = probabilities(case.family.head(case.model, hidden))

    assert distance(found, probabilities(case.stock_logits)) <= TOLERANCE


@pytest.mark.parametrize("family", FAMILIES)
def test_images_matter(prepare: Prepare, family: str) -> None:
    # Features that were dropped or swapped everywhere would pass the other tests if both sides did.
    case = prepare(family, 1)
    before = probabilities(case.stock_logits)[-1]
    other = case.loaded.family.process_image(case.loaded.processor, draw(0).rotate(90))

    changed = dataclasses.replace(case, images=[other])
    with torch.inference_mode():
        hidden = decoded(changed, [len(case.ids)])
        after = probabilities(case.family.head(case.model, hidden))[-1]

    assert distance(before, after) > 1e-4


@pytest.mark.parametrize("family", FAMILIES)
def test_features_of_unlike_images_are_those_of_each_alone(prepare: Prepare, family: str) -> None:
    case = prepare(family, 1)
    images = [case.family.process_image(case.loaded.processor, draw(seed)) for seed in range(3)]

    with torch.inference_mode():
        together = case.family.encode_images(case.model, images)
        for image, found in zip(images, together, strict=True):
            (alone,) = case.family.encode_images(case.model, [image])
            assert found.embeddings.shape == alone.embeddings.shape
            assert distance(found.embeddings, alone.embeddings) <= TOLERANCE
            for one, other in zip(found.layers, alone.layers, strict=True):
                assert distance(one, other) <= TOLERANCE


@pytest.mark.parametrize(("family", "number"), CASES)
def test_whole_forwards_from_pixels_and_from_features_equal_the_stock_one(
    prepare: Prepare, family: str, number: int
) -> None:
    case = prepare(family, number)
    # Two rows, so that images that went to the wrong prompt would show.
    ids = torch.tensor([case.ids, case.ids])
    images = [*case.images, *reversed(case.images)]

    with torch.inference_mode():
        from_pixels = case.family.next_token_logits(
            case.model, ids, case.family.join_images(images)
        )
        arguments = {}
        if images:
            arguments = case.family.features_as_inputs(
                case.family.encode_images(case.model, images)
            )
        from_features = case.family.next_token_logits(case.model, ids, arguments)

    expected = probabilities(case.stock_logits[-1])
    assert distance(probabilities(from_pixels[0]), expected) <= TOLERANCE
    assert distance(probabilities(from_pixels), probabilities(from_features)) <= TOLERANCE
    if number == 3:
        assert distance(from_pixels[0], from_pixels[1]) > 1e-4


@pytest.mark.parametrize("family", FAMILIES)
def test_new_tokens_equal_a_loop_of_stock_forwards(prepare: Prepare, family: str) -> None:
    case = prepare(family, 1)
    options = {"do_sample": False, "max_new_tokens": 4, "eos_token_id": None, "pad_token_id": 0}
    ids = torch.tensor([case.ids])

    with torch.inference_mode():
        expected = greedy(case, 4)
        pixels = case.family.join_images(case.images)
        from_pixels = case.family.new_tokens(case.model, ids, dict(pixels), **options)
        features = case.family.features_as_inputs(case.features())
        from_features = case.family.new_tokens(case.model, ids, features, **options)

    assert from_pixels[0].tolist() == expected
    assert from_features[0].tolist() == expected


def greedy(case: Case, number: int) -> list[int]:
    """Greedy tokens from decode steps over the cache of the whole prompt, which parity covers."""
    family, model = case.family, case.model
    found: list[int] = []
    original = list(case.ids)
    positions = family.positions(model, original, case.images)
    features = case.features()
    ids = torch.tensor(original)
    embeddings = family.embed(model, ids).clone()
    is_image = ids == family.image_token_id(model)
    embeddings[is_image] = torch.cat([image.embeddings for image in features])
    layers = [torch.cat(rows) for rows in zip(*(image.layers for image in features))]
    cache = DynamicCache()
    hidden = family.decode(
        model,
        embeddings=embeddings[None],
        positions=positions[:, None],
        mask=None,
        cache=cache,
        image_rows=is_image[None],
        layers=layers,
    )
    for step in range(1, number + 1):
        found.append(int(family.head(model, hidden[0, -1:]).argmax()))
        hidden = family.decode(
            model,
            embeddings=family.embed(model, torch.tensor(found[-1:]))[None],
            positions=family.next_positions(positions, step)[:, None, None],
            mask=torch.zeros(1, 1, 1, len(original) + step),
            cache=cache,
        )
    return found


@pytest.mark.parametrize("family", [name for name in FAMILIES if name not in EAGER])
def test_the_attention_kinds_agree(
    prepare: Prepare, family_folder: Callable[[str], Path], family: str
) -> None:
    # sdpa without a mask is causal where a module does not say otherwise, eager is not.
    case = prepare(family, 1)
    square = case.family.process_image(case.loaded.processor, draw(2))
    eager = load_processor(tiny_entry(family_folder(family), family, attention="eager"))
    other = load_model(eager, "cpu")

    with torch.inference_mode():
        (found,) = case.family.encode_images(case.model, [square])
        (expected,) = case.family.encode_images(other, [square])

    assert distance(found.embeddings, expected.embeddings) <= TOLERANCE
    for one, two in zip(found.layers, expected.layers, strict=True):
        assert distance(one, two) <= TOLERANCE
    hidden = decoded(case, [len(case.ids) - 8, 8])
    by_eager = decoded(dataclasses.replace(case, model=other), [len(case.ids)])
    assert distance(hidden, by_eager) <= 1e-4


EXTREME = [(family, size) for family in FAMILIES for size in ((1, 1), (90, 2))]
# The processor of Phi-4 refuses an image that would be fewer than ten pixels high in its tiles.
REFUSED = ("phi4_multimodal", (90, 2))


@pytest.mark.parametrize(("family", "size"), [case for case in EXTREME if case != REFUSED])
def test_an_extreme_image_has_a_feature_for_each_placeholder(
    prepare: Prepare, family: str, size: tuple[int, int]
) -> None:
    case = prepare(family, 1)
    image = Image.new("RGB", size, (200, 30, 30))

    with torch.inference_mode():
        inputs = case.family.process_image(case.loaded.processor, image)
        (features,) = case.family.encode_images(case.model, [inputs])

    token = case.family.image_token(case.loaded.processor)
    assert len(features.embeddings) == inputs.replacement.count(token)
    assert features.embeddings.isfinite().all()


def test_phi_refuses_a_sliver_with_an_error_that_becomes_an_error_row(load_tiny: Load) -> None:
    loaded, _ = load_tiny("phi4_multimodal")

    with pytest.raises(ValueError, match="aspect ratio is very extreme"):
        loaded.family.process_image(loaded.processor, Image.new("RGB", (90, 2)))
