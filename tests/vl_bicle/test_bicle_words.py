"""Gender words in texts: exact tokens, possessives, hyphens, phrases; and neutral questions."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmfair.errors import ConfigError
from vlmfair.text.gender import (
    gendered_caption,
    names_person,
    read_captions,
    read_gender,
    several_people,
    tokens,
)
from vlmfair.text.neutralise import neutralise
from vlmfair.text.words import (
    DEFAULT_PATH,
    load_gender_words,
    load_neutral_words,
    load_person_names,
)

WORDS = load_gender_words()
NEUTRAL = load_neutral_words()


@pytest.mark.parametrize(
    ("text", "gender"),
    [
        ("A man is walking his dog.", "Male"),
        ("A WOMAN", "Female"),
        ("The man's hat, and the boys' hats", "Male"),
        ("The woman’s bag", "Female"),
        ("a man--woman pair", "Both"),
        ("A man and\nher dog", "Both"),
        ("she'll go; she's there", "Female"),
        ("A human, a snowman, a mannequin near a manhole", None),
        ("a snow man, a lady bug and a stick man", None),
        ("someone in a cowboy hat on a king-size bed", None),
        ("a queen size bed by the women's room", None),
        ("a cowboy in a cowboy hat", "Male"),
        ("a man-made lake", None),
        ("a woman at a man made lake", "Female"),
        ("a woman-sized statue", None),
        ("", None),
        ("<b>man</b>", "Male"),
    ],
)
def test_words_count_exactly(text: str, gender: str | None) -> None:
    assert read_gender(text, WORDS).gender == gender


def test_gender_words_are_named_in_their_order() -> None:
    reading = read_gender("Her son and his sister; her.", WORDS)

    assert reading.masculine == ("son", "his")
    assert reading.feminine == ("her", "sister", "her")


@given(st.sampled_from(sorted(WORDS.masculine)), st.sampled_from(["", "s' ", "'s ", ". ", ", x"]))
def test_every_masculine_word_is_found_whatever_its_case_and_end(word: str, end: str) -> None:
    # "boss'" is no word: a plural possessive is only one of a plural that is listed.
    expected = end != "s' " or f"{word}s" in WORDS.masculine | WORDS.feminine
    found = read_gender(f"Look, {word.upper()}{end}", WORDS).gender

    assert (found is not None) == expected


@given(st.sampled_from(sorted(WORDS.phrases)), st.sampled_from(sorted(WORDS.feminine)))
def test_a_misleading_phrase_hides_nothing_but_itself(phrase: str, word: str) -> None:
    assert read_gender(f"One {phrase.upper()}.", WORDS).gender is None
    assert read_gender(f"One {phrase}, {word}.", WORDS).feminine[-1:] == (word,)


def test_captions_of_one_image_are_read_together() -> None:
    assert read_captions(["A man.", "Someone.", ""], WORDS).gender == "Male"
    assert read_captions(["A man.", "A woman."], WORDS).gender == "Both"
    assert read_captions([], WORDS).gender is None


def test_the_first_caption_that_names_the_gender_is_the_demonstration() -> None:
    captions = ["A person.", "A man and a woman.", "  A boy\nruns. ", "A man."]

    assert gendered_caption(captions, "Male", WORDS) == "A boy runs."
    assert gendered_caption(captions, "Female", WORDS) is None


def test_several_people_and_people_without_a_gender() -> None:
    assert several_people("Two women, a couple of boats, their man", WORDS) == (
        *("women", "couple", "their"),
    )
    assert several_people("A woman rides", WORDS) == ()
    assert names_person("The rider's horse", WORDS)
    assert not names_person("A horse", WORDS)


def test_tokens_are_lower_case_words() -> None:
    assert tokens("A well-dressed man's 2 DOGS—it's") == [
        *("a", "well-dressed", "man", "dogs", "it"),
    ]


def test_the_recommended_list_holds_both_published_ones() -> None:
    # Left out on purpose: a name, a misspelt possessive, and a state rather than a word of gender.
    left_out = {"obama", "mans", "pregnant"}

    for name in ("lic", "hendricks"):
        published = load_gender_words(name=name)
        assert published.masculine - left_out <= WORDS.masculine
        assert published.feminine - left_out <= WORDS.feminine
    # Hirota et al. 2022 list 27 masculine and 23 feminine words.
    lic = load_gender_words(name="lic")
    assert (len(lic.masculine), len(lic.feminine)) == (27, 23)


@pytest.mark.parametrize(
    ("question", "neutral"),
    [
        # The paper's two examples: man -> person, she -> this person.
        ("Is the man sitting?", "Is the person sitting?"),
        ("What is she holding?", "What is this person holding?"),
        ("Is the woman’s bag red?", "Is the person's bag red?"),
        ("Is a girl or the lady left of it?", "Is a child or the person left of it?"),
        ("Does an old man wear a cowboy hat?", "Does an old person wear a cowboy hat?"),
        ("Is the male player running?", "Is the player running?"),
        ("Is that a male athlete?", "Is that an athlete?"),
        ("Male baseball player, what is he doing?", "Baseball player, what is this person doing?"),
        ("Is the male wearing a hat?", "Is the person wearing a hat?"),
        ("Guy: where?", "Person: where?"),
        ("Is the MAN there?", "Is the person there?"),
        ("Is the man-made lake near the man?", "Is the man-made lake near the person?"),
    ],
)
def test_questions_become_neutral(question: str, neutral: str) -> None:
    found = neutralise(question, WORDS, NEUTRAL)

    assert (found.text or "").casefold() == neutral.casefold()
    assert found.reason == ""


@pytest.mark.parametrize(
    ("question", "reason", "resisted"),
    [
        # The paper's examples of words that resist.
        ("Who is next to him?", "resists", ("him",)),
        ("Is the mother of the girl here?", "resists", ("mother",)),
        ("Does the policeman smile?", "resists", ("policeman",)),
        ("Are the men sitting?", "resists", ("men",)),
        ("Is it a man or a woman?", "both_genders", ()),
        ("Is the dog brown?", "no_gender_word", ()),
        ("", "no_gender_word", ()),
    ],
)
def test_some_questions_resist(question: str, reason: str, resisted: tuple[str, ...]) -> None:
    found = neutralise(question, WORDS, NEUTRAL)

    assert (found.text, found.reason, found.resisted) == (None, reason, resisted)


OTHERS = ["The", "a", "an", "is", "of", "old", "cowboy hat", "player", "x"]


@given(st.lists(st.sampled_from([*OTHERS, *NEUTRAL.replacements]), max_size=8))
def test_a_neutral_question_has_no_gender_word(words: list[str]) -> None:
    found = neutralise(" ".join(words), WORDS, NEUTRAL)

    if found.text is not None:
        assert read_gender(found.text, WORDS).gender is None


def test_names_in_scene_graphs() -> None:
    names = load_person_names()

    assert {"man", "baseball player"} <= names.singular
    assert "people" in names.plural
    assert not names.singular & names.plural


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("masculine:", "male_words:"), "the key masculine is missing"),
        (("plural_collective: [", "plurals: ["), "plural_collective is missing"),
        (("pronoun: [he, him", "pronoun: [she, him"), "'she' is masculine and feminine"),
        (("pronoun: [he, him", "pronoun: [HE, him"), "'HE' in pronoun is no word in lower case"),
        (("pronoun: [he, him", "pronoun: [no, him"), "is no word in lower case"),
        (("lists:", "list:"), "the key lists is missing"),
    ],
)
def test_a_damaged_list_is_refused(tmp_path: Path, change: tuple[str, str], says: str) -> None:
    path = tmp_path / "words.yaml"
    source = DEFAULT_PATH.read_text(encoding="utf-8")
    assert change[0] in source
    path.write_text(source.replace(*change, 1), encoding="utf-8")

    with pytest.raises(ConfigError, match=says):
        load_gender_words(path)


def test_unknown_lists_and_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no list 'table_5' of gender words"):
        load_gender_words(name="table_5")
    with pytest.raises(ConfigError, match="the list of gender words is missing"):
        load_gender_words(tmp_path / "words.yaml")
