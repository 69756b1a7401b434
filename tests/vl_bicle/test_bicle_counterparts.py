"""Captions are told of the other gender, word for word."""

from __future__ import annotations

from pathlib import Path

import pytest
from bicle_samples import WORDS

from vlmfair.errors import ConfigError
from vlmfair.text.counterparts import Counterparts, load_counterparts, swap_gender
from vlmfair.text.words import load_gender_words

COUNTERPARTS = load_counterparts()


@pytest.mark.parametrize(
    ("caption", "swapped"),
    [
        ("A man rides a horse.", "A woman rides a horse."),
        ("A woman and her dog.", "A man and his dog."),
        ("A man and his dog; he laughs.", "A woman and her dog; she laughs."),
        ("Two dogs are behind her.", "Two dogs are behind him."),
        ("A dog beside her and a cat", "A dog beside him and a cat"),
        ("HE is a WAITER", "SHE is a WAITRESS"),
        ("Man in a cowboy hat.", "Woman in a cowboy hat."),
        ("The boy's mother", "The girl's father"),
        ("A woman with a queen size bed", "A man with a queen size bed"),
        ("a fireman's helmet on a man", "a firewoman's helmet on a woman"),
        ("A dog.", None),
        ("A manly statue", None),
    ],
)
def test_captions_are_told_of_the_other_gender(caption: str, swapped: str | None) -> None:
    assert swap_gender(caption, COUNTERPARTS, WORDS) == swapped


def test_a_word_without_a_counterpart_leaves_the_caption_unread() -> None:
    few = Counterparts({"woman": "man"}, "")

    assert swap_gender("A woman.", few, WORDS) == "A man."
    assert swap_gender("A woman and her dog.", few, WORDS) is None


def test_every_word_of_the_list_in_use_has_a_counterpart_of_the_other_gender() -> None:
    words = load_gender_words()
    known = COUNTERPARTS.words

    assert words.masculine | words.feminine <= set(known) | {"her"}
    listed = {word: other for word, other in known.items() if word in words.masculine}
    wrong = {word: other for word, other in listed.items() if other in words.masculine}
    wrong |= {w: o for w, o in known.items() if w in words.feminine and o in words.feminine}
    assert wrong == {}


@pytest.mark.parametrize("content", ["", "pairs: [[man]]\none_way: {}", "pairs: []", "[1"])
def test_a_damaged_list_of_counterparts_is_told(tmp_path: Path, content: str) -> None:
    path = tmp_path / "counterparts.yaml"
    path.write_text(content)

    with pytest.raises(ConfigError, match="counterparts.yaml"):
        load_counterparts(path)
    with pytest.raises(ConfigError, match="is missing"):
        load_counterparts(tmp_path / "nowhere.yaml")
