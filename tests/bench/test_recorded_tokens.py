"""The recorded token ids are those of the papers' prompts, as the models get them."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from tiny_llava import train_tokenizer
from tiny_models import chat_template
from transformers import CLIPImageProcessor, LlavaProcessor

from vlmfair.bench.recorded_tokens import (
    IMAGE_ID,
    NO_ID,
    YES_ID,
    load_token_ids,
    prompt_texts,
    record,
)
from vlmfair.errors import ConfigError
from vlmfair.models.chat import ChatRenderer, ImageRef, Turn
from vlmfair.models.families import load_family

PACKAGE = "llama-tokenizer-js"


@pytest.fixture(scope="module")
def recorded_file(root: Path) -> Path:
    return root / "resources/bench/llava_tokens.json"


@pytest.fixture(scope="module")
def texts(root: Path) -> dict[str, tuple[str, ...]]:
    return prompt_texts(root / "resources")


@pytest.fixture(scope="module")
def npm_package(root: Path) -> Path:
    """The package's folder, beside the repository's files or among npm's global ones."""
    folders = [root / "node_modules"]
    if shutil.which("npm"):
        found = subprocess.run(["npm", "root", "-g"], capture_output=True, text=True, check=False)
        folders.append(Path(found.stdout.strip()))
    for folder in folders:
        if (folder / PACKAGE).is_dir() and shutil.which("node"):
            return folder / PACKAGE
    pytest.skip(f"Node.js or the npm package {PACKAGE} is not installed")


def test_prompts_are_rendered_as_the_chat_template_renders_them(
    texts: dict[str, tuple[str, ...]],
) -> None:
    processor = LlavaProcessor(
        image_processor=CLIPImageProcessor(),
        tokenizer=train_tokenizer(),
        patch_size=14,
        vision_feature_select_strategy="default",
        chat_template=chat_template("llava"),
    )
    renderer = ChatRenderer(processor, load_family("llava", "tiny"), "tiny")

    for section in ("gras_paper", "gras_released", "facet"):
        for text in texts[section][:6]:
            asked = text.removeprefix("USER: <image>\n").removesuffix(" ASSISTANT:")
            turn = Turn("user", asked, (ImageRef("face.jpg", "00"),))
            assert renderer.render((turn,)).text == text


def test_gras_is_asked_in_500_unlike_prompts(
    recorded_file: Path, texts: dict[str, tuple[str, ...]]
) -> None:
    ids = load_token_ids(recorded_file, "gras_paper", texts["gras_paper"])

    assert len(set(ids)) == len(texts["gras_paper"]) == 500
    # "<s>USER: ", the image, and "\n" behind the space that the tokenizer puts after it: the ids
    # of llava-1.5-7b-hf for "USER: <image>\n...", as vLLM's documentation prints them.
    assert {one[:8] for one in ids} == {(1, 3148, 1001, 29901, 29871, IMAGE_ID, 29871, 13)}
    # " ASSISTANT:", from the same place.
    assert {one[-5:] for one in ids} == {(319, 1799, 9047, 13566, 29901)}


def test_runs_of_spaces_are_what_the_released_prompts_have_more(
    recorded_file: Path, texts: dict[str, tuple[str, ...]]
) -> None:
    paper, released = (
        load_token_ids(recorded_file, section, texts[section])
        for section in ("gras_paper", "gras_released")
    )

    # Two runs of 50 spaces instead of one: three tokens of 16 and one that holds the rest, twice.
    assert {len(b) - len(a) for a, b in zip(paper, released, strict=True)} == {8}


def test_the_labels_are_those_of_the_papers_table_5(
    recorded_file: Path, texts: dict[str, tuple[str, ...]]
) -> None:
    # "... exactly one of these responses: Yes or No." has both words in the middle of the text.
    first = load_token_ids(recorded_file, "gras_paper", texts["gras_paper"])[0]

    assert YES_ID == 3869
    assert first[first.index(YES_ID) : first.index(NO_ID) + 1] == (YES_ID, 470, NO_ID)


def test_facet_has_six_prompts(recorded_file: Path, texts: dict[str, tuple[str, ...]]) -> None:
    ids = load_token_ids(recorded_file, "facet", texts["facet"])

    assert [text.count("?") for text in texts["facet"]] == [0, 1, 1, 1, 1, 1]
    # The list of 52 classes is by far the longest.
    assert len(ids[0]) > 3 * max(map(len, ids[1:]))


def test_changed_prompts_are_refused(
    recorded_file: Path, texts: dict[str, tuple[str, ...]]
) -> None:
    changed = [text.replace("person", "human") for text in texts["gras_paper"]]

    with pytest.raises(ConfigError, match="prompts of gras_paper have changed.*Record them again"):
        load_token_ids(recorded_file, "gras_paper", changed)


def test_the_tokenizer_gives_the_recorded_ids(
    root: Path, recorded_file: Path, npm_package: Path
) -> None:
    found = record(root / "resources", npm_package)

    assert found == json.loads(recorded_file.read_text(encoding="utf-8"))
