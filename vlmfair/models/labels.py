"""Label tokens: the token that a surface form of an answer starts with after a given prompt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from vlmfair.errors import ModelError


@dataclass(frozen=True, slots=True)
class LabelTokens:
    """First token ids of labels, in their order, and which labels merged with the prompt's end."""

    ids: tuple[int, ...]
    merged: tuple[bool, ...]


def find_label_tokens(
    prompt: str,
    labels: Sequence[str],
    tokenise: Callable[[str], Sequence[int]],
    tokenise_alone: Callable[[str], Sequence[int]],
    model: str,
) -> LabelTokens:
    """Return the token of each label: the first one of `prompt + label` behind the prompt's own.

    Where the label's first characters merge with the prompt's last token, the model can never be
    asked for that merged token; the label's token is then the first one of the label tokenised by
    itself, which is what the released scripts of GRAS take always. Raises ModelError on an empty
    label, because it has no token.
    """
    prompt_ids = tuple(tokenise(prompt))
    ids, merged = [], []
    for label in labels:
        if not label.strip():
            raise ModelError(
                f"{model}: the label {label!r} is empty, so that no token stands for it. "
                f"Write an answer's surface form."
            )
        whole = tuple(tokenise(prompt + label))
        continues = len(whole) > len(prompt_ids) and whole[: len(prompt_ids)] == prompt_ids
        ids.append(whole[len(prompt_ids)] if continues else tokenise_alone(label)[0])
        merged.append(not continues)
    return LabelTokens(tuple(ids), tuple(merged))


def shared_labels(labels: Sequence[str], ids: Sequence[int]) -> list[list[str]]:
    """Return the groups of labels that start with the same token and get the same logit."""
    by_token: dict[int, list[str]] = {}
    for label, token in zip(labels, ids, strict=True):
        by_token.setdefault(token, []).append(label)
    return [group for group in by_token.values() if len(group) > 1]


def check_stated_id(
    model: str,
    form: str,
    stated: int,
    found: int,
    decode: Callable[[int], str],
) -> None:
    """Raise ModelError unless the tokenizer gives the token id that the paper states for a form."""
    if stated != found:
        raise ModelError(
            f"{model}: {form!r} starts with token {found} ({decode(found)!r}) after this prompt, "
            f"and the paper states {stated} ({decode(stated)!r}). Check that path or revision "
            f"names the paper's model and that yes_form is the form that continues its prompt."
        )
