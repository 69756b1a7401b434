"""The prompts that each family's published chat template makes, compared with committed ones.

The templates are those of the checkpoints named in docs/models.md; `raw` families have none. After
a deliberate change of a template, write the new texts into golden_prompts.json by hand.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tiny_models import FAMILIES

from vlmfair.errors import ModelError
from vlmfair.models.chat import ChatRenderer, ImageRef, Turn
from vlmfair.models.loading import LoadedProcessor

GOLDEN = json.loads((Path(__file__).parent / "golden_prompts.json").read_text(encoding="utf-8"))
REF = ImageRef("noise.png", "0" * 64)
QUESTION = "Is the person honest?"
CONVERSATIONS: dict[str, tuple[tuple[Turn, ...], str]] = {
    "text_only": ((Turn("user", QUESTION),), ""),
    "one_image": ((Turn("user", QUESTION, (REF,)),), ""),
    "system_turn": ((Turn("system", "Answer briefly."), Turn("user", QUESTION, (REF,))), ""),
    "assistant_prefix": ((Turn("user", "Describe.", (REF,)),), "The nurse and"),
    "two_demonstrations": (
        (
            Turn("user", "Describe.", (REF,)),
            Turn("assistant", "The nurse and his patient."),
            Turn("user", "Describe.", (REF,)),
            Turn("assistant", "The nurse and her patient."),
            Turn("user", "Describe.", (REF,)),
        ),
        "",
    ),
}
Load = Callable[[str], tuple[LoadedProcessor, Any]]


def rendered(load_tiny: Load, family: str, name: str) -> str:
    loaded, _ = load_tiny(family)
    turns, prefix = CONVERSATIONS[name]
    renderer = ChatRenderer(loaded.processor, loaded.family, "tiny")
    try:
        return renderer.render(turns, prefix).text
    except ModelError as error:
        return f"ModelError: {error}"


@pytest.mark.parametrize("name", CONVERSATIONS)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_prompt_is_the_committed_one(load_tiny: Load, family: str, name: str) -> None:
    assert rendered(load_tiny, family, name) == GOLDEN[family][name]


def test_every_family_has_golden_prompts() -> None:
    assert GOLDEN.keys() == FAMILIES.keys()
    assert all(prompts.keys() == CONVERSATIONS.keys() for prompts in GOLDEN.values())


def test_llama_prompts_do_not_change_from_day_to_day(load_tiny: Load) -> None:
    # The template asks the clock unless it is told a date.
    loaded, _ = load_tiny("mllama")
    message = {"role": "user", "content": [{"type": "text", "text": QUESTION}]}
    today = loaded.processor.apply_chat_template([message], add_generation_prompt=True)

    ours = rendered(load_tiny, "mllama", "text_only")

    assert "Today Date: 26 Jul 2024" in ours
    assert today != ours


def test_numbered_images_of_phi_become_the_processors_placeholder(load_tiny: Load) -> None:
    # The GRAS scripts write the tags of the model's own code.
    loaded, _ = load_tiny("phi4_multimodal")
    text = "<|user|><|image_1|>Is the person honest?<|end|><|assistant|>"
    renderer = ChatRenderer(loaded.processor, loaded.family, "tiny")

    prompt = renderer.render((Turn("user", text, (REF,)),), rendering="raw")

    assert prompt.text == "<|user|><|image|>Is the person honest?<|end|><|assistant|>"


def test_more_images_than_a_family_takes_are_refused(load_tiny: Load) -> None:
    loaded, _ = load_tiny("blip2")
    renderer = ChatRenderer(loaded.processor, loaded.family, "tiny")

    with pytest.raises(ModelError, match=r"a prompt of 2 images, and .* blip2 take 1\. Leave"):
        renderer.render((Turn("user", QUESTION, (REF, REF)),))
