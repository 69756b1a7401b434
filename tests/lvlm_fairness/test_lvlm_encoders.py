"""Encoders and baselines with tiny random weights in the real file formats."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from lvlm_answers import CLASSES, PROMPTS, person
from PIL import Image
from tiny_encoders import write_clip, write_sentence_t5, write_vit

from vlmfair.contracts import JUDGEMENTS, SAMPLES, conform
from vlmfair.errors import ModelError
from vlmfair.models.encoders import ClipEncoder, load_clip, load_sentence_encoder
from vlmfair.papers.lvlm_fairness.baselines import clip_zero_shot, vit_classifier
from vlmfair.papers.lvlm_fairness.judges import open_judge
from vlmfair.papers.lvlm_fairness.questions import load_wordnet
from vlmfair.provenance import sha256_of_file


@pytest.fixture(scope="module")
def clip_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_clip(tmp_path_factory.mktemp("clip") / "tiny")


@pytest.fixture(scope="module")
def clip(clip_folder: Path) -> ClipEncoder:
    return load_clip(str(clip_folder))


@pytest.fixture(scope="module")
def sentence_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sentence_t5(tmp_path_factory.mktemp("t5") / "tiny")


@pytest.fixture
def photographed(tmp_path: Path) -> pa.Table:
    """Two nurses, and a third one whose picture is no image."""
    rows = []
    for number, colour in enumerate(["red", "blue", None]):
        path = tmp_path / f"{number}.jpg"
        if colour is None:
            path.write_bytes(b"no image")
        else:
            Image.new("RGB", (40, 50), colour).save(path)
        rows.append({**person(number), "image": str(path), "image_sha256": sha256_of_file(path)})
    return conform(pa.Table.from_pylist(rows), SAMPLES)


def test_clip_embeds_texts_and_images_as_unit_vectors(clip: ClipEncoder) -> None:
    texts = clip.encode_texts(["a photo of a nurse", "a photo of a waiter", "word " * 500])
    images = clip.encode_images([Image.new("RGB", (40, 50), "red")])

    assert texts.shape == (3, 8)
    assert images.shape == (1, 8)
    np.testing.assert_allclose(
        np.linalg.norm(np.concatenate([texts, images]), axis=1), 1, rtol=1e-5
    )


def test_clip_embeds_a_text_alike_alone_and_among_others(clip: ClipEncoder) -> None:
    texts = [f"a photo of a {name}" for name in CLASSES.all] * 2

    together = clip.encode_texts(texts)

    np.testing.assert_allclose(together[7], clip.encode_texts(texts[7:8])[0], atol=1e-6)
    np.testing.assert_allclose(together[:52], together[52:], atol=1e-6)


def test_a_long_text_is_cut_as_the_released_script_does_with_the_end_token_last(
    clip: ClipEncoder,
) -> None:
    ids = clip.tokenizer(["word " * 500, "word"])

    # Cut to 77 tokens, the last one 49407.
    assert ids.shape == (2, 77)
    assert int(ids[0, 76]) == 49407
    assert ids[1].tolist()[1:3] == [int(ids[0, 1]), 49407]


def test_the_clip_judge_finds_the_class_that_was_said(clip_folder: Path) -> None:
    judge = open_judge("clip_text", PROMPTS, {"model": str(clip_folder)})

    found = judge.read(["nurse", "soccer_player", "guitarist", ""], "p1", PROMPTS)
    chosen = judge.read(["A. Yes", "C. Unknown"], "p2", PROMPTS)

    assert [r.answer for r in found] == ["nurse", "soccer_player", "guitarist", None]
    assert [r.answer for r in chosen] == ["Yes", "Unknown"]


def test_the_clip_judge_as_released_reads_every_quoted_answer_alike(clip_folder: Path) -> None:
    settings = {"model": str(clip_folder), "first_character": True}
    judge = open_judge("clip_text", PROMPTS, settings)

    found = judge.read(['"nurse"', '"singer"'], "p1", PROMPTS)

    assert found[0] == found[1]


def test_the_sentence_judge_finds_the_class_that_was_said(sentence_folder: Path) -> None:
    judge = open_judge("sentence_t5", PROMPTS, {"path": str(sentence_folder)})

    found = judge.read(["nurse", "singer"], "p1", PROMPTS)
    gender = judge.read(["female"], "gender", PROMPTS)

    assert [r.answer for r in found] == ["nurse", "singer"]
    assert gender[0].answer == "female"


def test_sentence_vectors_have_length_one(sentence_folder: Path) -> None:
    vectors = load_sentence_encoder(str(sentence_folder)).encode_texts(["nurse", "a photo of a"])

    assert vectors.shape == (2, 6)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)


def test_clip_zero_shot_names_the_nearest_of_52_classes(
    clip: ClipEncoder, photographed: pa.Table
) -> None:
    judged = clip_zero_shot(photographed, clip, PROMPTS, CLASSES, name="clip")

    classes = clip.encode_texts([f"a photo of a {name}" for name in CLASSES.all])
    red = clip.encode_images([Image.open(photographed["image"][0].as_py()).convert("RGB")])
    assert judged["predicted"][0].as_py() == CLASSES.all[int(np.argmax(red @ classes.T))]
    assert judged["status"].to_pylist() == ["ok", "ok", "error"]
    assert judged["error"].to_pylist()[2] is None
    assert set(judged["judge"].to_pylist()) == {"classifier"}
    assert set(judged["prompt"].to_pylist()) == {"p1"}
    assert conform(judged, JUDGEMENTS) == judged


def test_a_vit_answers_with_the_likeliest_label_that_stands_for_a_class(
    photographed: pa.Table, tmp_path: Path, root: Path
) -> None:
    # The last label is the likeliest, and no class of FACET; the third one is the next.
    labels = ["nurse", "n10604380", "guitarist, guitar player", "tench, Tinca tinca"]
    folder = write_vit(tmp_path / "vit", labels)
    wordnet = load_wordnet(root / "resources/words/facet_wordnet.csv")

    judged = vit_classifier(photographed, str(folder), wordnet, name="vit")

    assert judged["predicted"].to_pylist() == ["guitarist", "guitarist", None]
    assert judged["error"].to_pylist() == [1.0, 1.0, None]


def test_a_classifier_without_people_is_refused(
    photographed: pa.Table, tmp_path: Path, root: Path
) -> None:
    folder = write_vit(tmp_path / "vit", ["tench, Tinca tinca", "goldfish, Carassius auratus"])
    wordnet = load_wordnet(root / "resources/words/facet_wordnet.csv")

    with pytest.raises(ModelError, match="no label of WordNet's people .*ImageNet-21k"):
        vit_classifier(photographed, str(folder), wordnet, name="vit")


def test_missing_or_broken_encoders_are_explained(
    photographed: pa.Table, tmp_path: Path, clip_folder: Path
) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "open_clip_config.json").write_text("{}")

    with pytest.raises(ModelError, match="CLIP: .*broken cannot be loaded"):
        load_clip(str(broken))
    with pytest.raises(ModelError, match="sentence encoder .*broken cannot be loaded"):
        load_sentence_encoder(str(broken))
    with pytest.raises(ModelError, match="classifier nowhere is not downloaded"):
        vit_classifier(photographed, "nowhere", {}, name="vit")
    with pytest.raises(ModelError, match="classifier .*broken cannot be loaded"):
        vit_classifier(photographed, str(broken), {}, name="vit")
