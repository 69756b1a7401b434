"""Rendering equals what transformers' own processor makes of the same conversation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tiny_llava import IMAGE_TOKENS, tiny_entry

from vlmfair.errors import ModelError
from vlmfair.models.chat import ChatRenderer, ImageRef, Turn
from vlmfair.models.loading import LoadedProcessor, load_processor

REF = ImageRef("somewhere.png", "0" * 64)
QUESTION = Turn("user", "Is the person honest?   Yes or No", (REF,))
DEMONSTRATIONS = (
    Turn("user", "Describe the image.", (REF,)),
    Turn("assistant", "The nurse and his patient."),
)


@pytest.fixture(scope="module")
def loaded(model_folder: Path) -> LoadedProcessor:
    return load_processor(tiny_entry(model_folder))


@pytest.fixture
def renderer(loaded: LoadedProcessor) -> ChatRenderer:
    return ChatRenderer(loaded.processor, loaded.family, "tiny")


@pytest.fixture
def image() -> Image.Image:
    pixels = np.random.default_rng(0).integers(0, 255, (30, 40, 3), dtype=np.uint8)
    return Image.fromarray(pixels)


def replacements(loaded: LoadedProcessor, image: Image.Image, number: int) -> tuple[str, ...]:
    return (loaded.family.process_image(loaded.processor, image).replacement,) * number


def test_a_question_is_rendered_by_the_models_template(renderer: ChatRenderer) -> None:
    prompt = renderer.render((QUESTION,))

    assert prompt.text == "USER: <image>\nIs the person honest?   Yes or No ASSISTANT:"


def test_demonstrations_come_before_the_question(renderer: ChatRenderer) -> None:
    prompt = renderer.render((*DEMONSTRATIONS, QUESTION))

    assert prompt.text == (
        "USER: <image>\nDescribe the image. ASSISTANT: The nurse and his patient. "
        "USER: <image>\nIs the person honest?   Yes or No ASSISTANT:"
    )


def test_an_assistant_prefix_is_continued_as_demonstrations_are_written(
    renderer: ChatRenderer, loaded: LoadedProcessor
) -> None:
    prompt = renderer.render((QUESTION,), "The nurse and")
    his, her = renderer.label_tokens(prompt, (" his", " her")).ids

    assert prompt.text.endswith("Yes or No ASSISTANT: The nurse and")
    assert loaded.processor.tokenizer.convert_ids_to_tokens([his, her]) == ["Ġhis", "Ġher"]


@pytest.mark.parametrize("number", [1, 2])
def test_ids_equal_the_processors_chat_call(
    renderer: ChatRenderer, loaded: LoadedProcessor, image: Image.Image, number: int
) -> None:
    turns = (*DEMONSTRATIONS[: 2 * (number - 1)], QUESTION)
    messages = [
        {
            "role": turn.role,
            "content": [
                *({"type": "image", "image": image} for _ in turn.images),
                {"type": "text", "text": turn.text},
            ],
        }
        for turn in turns
    ]
    expected = loaded.processor.apply_chat_template(
        messages, add_generation_prompt=True, tokenize=True, return_dict=True
    )

    ids = renderer.expand(renderer.render(turns), replacements(loaded, image, number))

    assert list(ids) == expected["input_ids"][0]
    assert ids.count(loaded.processor.image_token_id) == number * IMAGE_TOKENS
    processed = loaded.family.process_image(loaded.processor, image)
    np.testing.assert_array_equal(
        processed.tensors["pixel_values"][0], expected["pixel_values"][number - 1]
    )


def test_a_raw_prompt_equals_the_processors_plain_call(
    renderer: ChatRenderer, loaded: LoadedProcessor, image: Image.Image
) -> None:
    text = "<image>\nUSER: Is the person honest?\nASSISTANT:"
    expected = loaded.processor(images=image, text=text)["input_ids"][0]

    prompt = renderer.render((Turn("user", text, (REF,)),), rendering="raw")

    assert list(renderer.expand(prompt, replacements(loaded, image, 1))) == expected


def test_a_template_that_writes_the_first_token_gets_no_second(
    loaded: LoadedProcessor, model_folder: Path
) -> None:
    own = load_processor(tiny_entry(model_folder))
    own.processor.chat_template = "<s>" + own.processor.chat_template
    bos = own.processor.tokenizer.bos_token_id

    ids = ChatRenderer(own.processor, own.family, "tiny").render((QUESTION,)).ids

    assert ids.count(bos) == 1
    assert ids[0] == bos


@pytest.mark.parametrize("rendering", ["chat", "raw"])
def test_an_image_placeholder_in_plain_text_is_refused(
    renderer: ChatRenderer, rendering: str
) -> None:
    turn = Turn("user", "What does <image> <image> mean?", (REF,))

    with pytest.raises(ModelError, match=r"Write one placeholder for each image"):
        renderer.render((turn,), rendering=rendering)


@pytest.mark.parametrize(
    ("turns", "rendering", "sentence"),
    [
        ((), "chat", "a conversation is empty"),
        ((Turn("robot", "Hello"),), "chat", "Use one of system, user, assistant."),
        ((QUESTION,), "poem", "Use one of chat, raw."),
        ((*DEMONSTRATIONS, QUESTION), "raw", "a raw prompt of 3 turns"),
    ],
)
def test_a_conversation_that_cannot_be_rendered_is_refused(
    renderer: ChatRenderer, turns: tuple[Turn, ...], rendering: str, sentence: str
) -> None:
    with pytest.raises(ModelError) as caught:
        renderer.render(turns, rendering=rendering)

    assert sentence in str(caught.value)


def test_a_model_without_a_template_says_so(model_folder: Path) -> None:
    own = load_processor(tiny_entry(model_folder))
    own.processor.chat_template = None

    with pytest.raises(ModelError, match=r"has no chat template. Add chat_template.jinja"):
        ChatRenderer(own.processor, own.family, "tiny").render((QUESTION,))
