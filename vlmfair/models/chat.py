"""Chat rendering: the turns of a conversation become the text and token ids a model is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from vlmfair.errors import ModelError
from vlmfair.models.families.base import Family
from vlmfair.models.labels import LabelTokens, find_label_tokens

# Unlike prompts that are remembered; with the demonstrations of one, ids may be 40 kB each.
REMEMBERED_PROMPTS = 4096
ROLES = ("system", "user", "assistant")
RENDERINGS = ("chat", "raw")
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class ImageRef:
    """One image file: its path, the SHA-256 of its bytes, and what is done before processing."""

    path: str
    sha256: str
    transform: str = "none"


@dataclass(frozen=True, slots=True)
class Turn:
    """What one side of a conversation says; its images come before its text."""

    role: str
    text: str
    images: tuple[ImageRef, ...] = ()


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """A whole prompt: its text and ids with one placeholder for each image."""

    text: str
    ids: tuple[int, ...]
    adds_special_tokens: bool


class ChatRenderer:
    """Renders conversations for one model; equal conversations are rendered and tokenised once.

    The result equals `processor.apply_chat_template(..., tokenize=True)`, and for `raw` requests
    `processor(text=..., images=...)`, which the tests compare.
    """

    def __init__(self, processor: Any, family: Family, model: str) -> None:
        self._processor = processor
        self._family = family
        self._model = model
        self._rendered: dict[tuple[Any, ...], RenderedPrompt] = {}
        self._expanded: dict[tuple[str, tuple[str, ...]], tuple[int, ...]] = {}
        self._labels: dict[tuple[str, tuple[str, ...]], LabelTokens] = {}

    def render(
        self, turns: Sequence[Turn], assistant_prefix: str = "", rendering: str | None = None
    ) -> RenderedPrompt:
        """Return the prompt after which the model answers, or continues `assistant_prefix`.

        `rendering` is `chat` (the model's chat template), `raw` (the text of the one user turn as
        it is) or None (the family's own). Raises ModelError when the turns cannot be rendered.
        """
        rendering = rendering or self._family.rendering
        key = (
            *((turn.role, turn.text, len(turn.images)) for turn in turns),
            assistant_prefix,
            rendering,
        )
        found = self._rendered.get(key)
        if found is None:
            found = _remember(self._rendered, key, self._render(turns, assistant_prefix, rendering))
        return found

    def expand(self, prompt: RenderedPrompt, replacements: tuple[str, ...]) -> tuple[int, ...]:
        """Return the ids of the whole prompt with each image's placeholder replaced by its text."""
        key = (prompt.text, replacements)
        found = self._expanded.get(key)
        if found is None:
            text = prompt.text
            if replacements:
                pieces = text.split(self._family.image_token(self._processor))
                parts = [pieces[0]]
                for replacement, piece in zip(replacements, pieces[1:], strict=True):
                    parts.extend((replacement, piece))
                text = "".join(parts)
            found = _remember(self._expanded, key, self._tokenise(text, prompt.adds_special_tokens))
        return found

    def label_tokens(self, prompt: RenderedPrompt, labels: tuple[str, ...]) -> LabelTokens:
        """Return the token that each label starts with where it continues the prompt."""
        key = (prompt.text, labels)
        found = self._labels.get(key)
        if found is None:
            tokens = find_label_tokens(
                prompt.text,
                labels,
                lambda text: self._tokenise(text, prompt.adds_special_tokens),
                lambda text: self._tokenise(text, False),
                self._model,
            )
            found = _remember(self._labels, key, tokens)
        return found

    def _tokenise(self, text: str, add_special_tokens: bool) -> tuple[int, ...]:
        return tuple(self._family.tokenise(self._processor, text, add_special_tokens))

    def _render(
        self, turns: Sequence[Turn], assistant_prefix: str, rendering: str
    ) -> RenderedPrompt:
        self._check_turns(turns, rendering)
        if rendering == "raw":
            number = len(turns[0].images)
            text = self._family.raw_text(turns[0].text, number, self._processor) + assistant_prefix
            adds_special_tokens = self._family.raw_adds_special_tokens
        else:
            text = self._chat_text(turns, assistant_prefix)
            # transformers' own rule: a template that writes the first token itself gets no second.
            bos = self._processor.tokenizer.bos_token
            adds_special_tokens = not (bos and text.startswith(bos))
        placeholders = text.count(self._family.image_token(self._processor))
        expected = sum(len(turn.images) for turn in turns)
        most = self._family.most_images
        if most is not None and expected > most:
            raise ModelError(
                f"{self._model}: a prompt of {expected} images, and models of the family "
                f"{self._family.name} take {most}. Leave demonstrations out, or use another model."
            )
        if placeholders != expected:
            raise ModelError(
                f"{self._model}: a {rendering} prompt holds {placeholders} image placeholders for "
                f"{expected} images. Write one placeholder for each image, and none in plain text."
            )
        return RenderedPrompt(text, self._tokenise(text, adds_special_tokens), adds_special_tokens)

    def _check_turns(self, turns: Sequence[Turn], rendering: str) -> None:
        wrong = sorted({turn.role for turn in turns} - set(ROLES))
        if not turns or wrong:
            raise ModelError(
                f"{self._model}: a conversation has the role {wrong[0]!r}. Use one of "
                f"{', '.join(ROLES)}."
                if wrong
                else f"{self._model}: a conversation is empty. Give it at least one user turn."
            )
        if rendering not in RENDERINGS:
            raise ModelError(
                f"{self._model}: {rendering!r} is no way to render a prompt. Use one of "
                f"{', '.join(RENDERINGS)}."
            )
        if rendering == "raw" and len(turns) != 1:
            raise ModelError(
                f"{self._model}: a raw prompt of {len(turns)} turns. Write the whole prompt as "
                f"one user turn, or use the chat rendering for demonstrations."
            )

    def _chat_text(self, turns: Sequence[Turn], assistant_prefix: str) -> str:
        if getattr(self._processor, "chat_template", None) is None:
            raise ModelError(
                f"{self._model}: the model has no chat template. Add chat_template.jinja to its "
                f"folder, or use a raw prompt."
            )
        messages = [_message(turn) for turn in turns]
        if assistant_prefix:
            prefix = Turn("assistant", assistant_prefix)
            return str(
                self._processor.apply_chat_template(
                    [*messages, _message(prefix)],
                    continue_final_message=True,
                    **self._family.template_arguments,
                )
            )
        return str(
            self._processor.apply_chat_template(
                messages, add_generation_prompt=True, **self._family.template_arguments
            )
        )


def _remember(known: dict[_Key, _Value], key: _Key, value: _Value) -> _Value:
    if len(known) >= REMEMBERED_PROMPTS:
        known.clear()
    known[key] = value
    return value


def _message(turn: Turn) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "image"} for _ in turn.images]
    content.append({"type": "text", "text": turn.text})
    return {"role": turn.role, "content": content}
