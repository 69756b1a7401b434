"""The committed encoders load like any other, and find what they were trained to find."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from transformers import AutoModelForImageClassification, CLIPVisionModel

from vlmfair.demo import clip_training, questions, sentence_model
from vlmfair.demo.clip_model import Tokens, build_clip, ported_tower, save_clip, text_features
from vlmfair.demo.encoder_answers import answer_sets, draw_answers
from vlmfair.demo.encoder_captions import FACTS, draw_captions, fits, scene_facts
from vlmfair.demo.encoder_measures import held_out, measure_classifier, measure_clip
from vlmfair.demo.folders import whole_folder
from vlmfair.demo.people import OCCUPATIONS, Person
from vlmfair.demo.planted import load_planted
from vlmfair.demo.scenes import Scene, draw, sample_scene
from vlmfair.demo.train_encoders import train_demo_encoders
from vlmfair.demo.vision import vision_config
from vlmfair.models.encoders import load_clip, load_sentence_encoder
from vlmfair.papers.lvlm_fairness.judges import open_judge
from vlmfair.papers.lvlm_fairness.questions import load_classes, load_prompts, load_wordnet

ROOT = Path(__file__).parents[2]
DEMO, WORDS = ROOT / "resources/demo", ROOT / "resources/words"
CLASSES = load_classes(WORDS / "facet_classes.csv")
PROMPTS = load_prompts(ROOT / "resources/prompts/lvlm_fairness.yaml", CLASSES)
TABLE = load_planted(DEMO / "planted.yaml")
WORDNET = load_wordnet(WORDS / "facet_wordnet.csv")
MEGABYTE = 1_000_000
JUDGES = {
    "clip_text": {"model": str(DEMO / "clip")},
    "sentence_t5": {"path": str(DEMO / "sentence-t5")},
}
NURSE = Person("female", 30, 4, "White", "nurse")
# Sentences that training does not have.
UNSEEN_ANSWERS = (
    "It looks like a {} to me.",
    "My answer would be: {}",
    'Sure! "{}" describes this picture well.',
)


@pytest.fixture(scope="module")
def clip():
    return load_clip(str(DEMO / "clip"))


@pytest.fixture(scope="module", params=JUDGES)
def judge(request):
    return open_judge(request.param, PROMPTS, JUDGES[request.param])


@pytest.mark.parametrize(("name", "most"), [("clip", 9), ("sentence-t5", 2), ("vit", 3)])
def test_the_weights_are_small_enough_to_commit(name, most):
    files = [path for path in (DEMO / name).rglob("*") if path.is_file()]
    assert 0 < sum(path.stat().st_size for path in files) <= most * MEGABYTE


def test_clip_is_committed_in_half_precision():
    with safe_open(DEMO / "clip/open_clip_model.safetensors", "pt") as weights:
        kinds = {weights.get_slice(name).get_dtype() for name in weights.offset_keys()}
    assert kinds == {"F16"}


def test_clip_finds_the_caption_of_a_drawn_nurse(clip):
    images = clip.encode_images([draw(Scene((NURSE,), "office", seed)) for seed in (1, 2, 3)])
    texts = [
        "A woman is holding a clipboard in the office.",
        "A man is holding a clipboard in the office.",
        "A woman is reading a book in the office.",
        "A woman is holding a clipboard at the beach.",
    ]
    cosines = images @ clip.encode_texts(texts).T
    assert cosines.argmax(axis=1).tolist() == [0, 0, 0]
    assert np.allclose(np.linalg.norm(images, axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("said", ["{}", '"{}"', "{}.", ' "{}"'])
def test_the_judges_find_every_class_as_the_demo_models_say_it(judge, said):
    readings = judge.read([said.format(name) for name in CLASSES.all], "p1", PROMPTS)
    assert [reading.answer for reading in readings] == list(CLASSES.all)


@pytest.mark.parametrize("prompt", ["gender", "age", "race", "skin_tone"])
def test_the_judges_find_the_labels_of_people(judge, prompt):
    scenes = [sample_scene(np.random.default_rng(seed), hooded=False) for seed in range(30)]
    asked = [questions.label_question(scene, prompt, TABLE) for scene in scenes]
    answers = [(q.answer(choice), choice) for q in asked for choice in q.choices]
    readings = judge.read([text for text, _ in answers], prompt, PROMPTS)
    assert [reading.answer for reading in readings] == [label for _, label in answers]


def test_the_judges_find_the_options(judge):
    asked = questions.choice_question(Scene((NURSE,), "park", 1), "nurse", "p2", TABLE)
    answers = {asked.answer(choice): choice for choice in asked.choices}
    assert set(answers) == {" A. Yes", " B. No", " C. Unknown"}
    said = [*answers, "Yes", "No", "Unknown", "A", "B", "C", "Yes.", "b. no", "(C) Unknown"]
    readings = judge.read(said, "p2", PROMPTS)
    expected = ["Yes", "No", "Unknown"] * 3 + ["Yes", "No", "Unknown"]
    assert [reading.answer for reading in readings] == expected


@pytest.mark.parametrize("said", UNSEEN_ANSWERS)
def test_the_judges_find_most_classes_in_sentences_they_never_saw(judge, said):
    readings = judge.read([said.format(name) for name in CLASSES.all], "p1", PROMPTS)
    right = sum(r.answer == name for r, name in zip(readings, CLASSES.all, strict=True))
    assert right >= 0.8 * len(CLASSES.all)


def test_the_classifier_has_wordnets_labels_of_the_13_occupations():
    model = AutoModelForImageClassification.from_pretrained(DEMO / "vit")
    labels = [model.config.id2label[number] for number in range(model.config.num_labels)]
    assert [WORDNET.get(label) for label in labels] == [None, *OCCUPATIONS]
    # Committed as float16; in that it could not take the processor's float32 images.
    assert model.dtype == torch.float32


def test_the_classifier_names_what_is_drawn():
    found = measure_classifier(DEMO / "vit", held_out(150), WORDNET)
    assert found["name of 13"] >= 0.95
    # Nothing is planted in the baselines.
    assert abs(found["name of 13, women - men"]) <= 0.05


def test_a_ported_vision_tower_computes_the_same():
    tower = CLIPVisionModel(vision_config()).eval()
    model = build_clip(tower, torch.arange(10)).eval()
    pixels = torch.randn(2, 3, 96, 96, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        theirs = tower(pixel_values=pixels).last_hidden_state
        ours = model.visual.transformer(model.visual._embeds(pixels))
    assert torch.allclose(ours, theirs, atol=1e-5)
    assert set(ported_tower(tower, model.visual.proj)) == set(model.visual.state_dict())


def test_a_saved_clip_encodes_texts_as_the_trained_one_and_new_words_as_nothing(tmp_path):
    tokens = Tokens()
    texts = ["A man is riding a horse.", "a photo of a nurse"]
    torch.manual_seed(3)
    model = build_clip(CLIPVisionModel(vision_config()), tokens(texts).unique())
    with torch.no_grad():
        trained = text_features(model, tokens(texts)).numpy()
    save_clip(model, tmp_path / "clip")
    saved = load_clip(str(tmp_path / "clip"))
    assert np.abs(saved.encode_texts(texts) - trained).max() < 2e-3
    known = int(tokens(["nurse"])[0, 1])
    table = saved.model.token_embedding.weight
    assert table[known].abs().sum() > 0
    assert table[int(tokens(["zebra"])[0, 1])].abs().sum() == 0


def test_captions_fit_the_scenes_in_which_all_that_they_say_is_seen():
    nurse = Scene((NURSE,), "office", 1)
    other_place = Scene((NURSE,), "park", 1)
    other_gender = Scene((Person("male", 30, 4, "White", "nurse"),), "office", 1)
    hooded = Scene((Person("female", 30, 4, "White", "nurse", hooded=True),), "office", 1)
    scenes = np.array([scene_facts(s) for s in (nurse, other_place, other_gender, hooded)])
    woman = (1, scenes[0, 1], scenes[0, 2], 0, -1, -1, -1)
    anybody = (-1, scenes[0, 1], -1, 0, -1, -1, -1)
    assert len(woman) == len(FACTS)
    assert fits(np.array([woman, anybody]), scenes).tolist() == [
        [True, False, False, False],
        [True, True, True, True],
    ]


def test_of_three_drawn_captions_the_first_alone_fits():
    rng = np.random.default_rng(5)
    for _ in range(200):
        scene = sample_scene(rng)
        drawn = draw_captions(scene, rng)
        facts = np.array([caption.facts for caption in drawn])
        found = fits(facts, np.array([scene_facts(scene)]))[:, 0]
        assert found.tolist() == [True, False, False], (scene, drawn)


def test_drawn_answers_hold_their_label():
    rng = np.random.default_rng(2)
    for answers, said, places in draw_answers(answer_sets(PROMPTS, "sentence_t5")[:5], 24, rng):
        for text, place in zip(said, places, strict=True):
            label = answers.labels[place].replace("_", " ")
            assert label in text.replace("_", " ").lower()


def test_a_folder_stays_as_it_was_when_writing_fails(tmp_path):
    with whole_folder(tmp_path / "model") as folder:
        (folder / "weights").write_text("old")
    with pytest.raises(RuntimeError, match="full"), whole_folder(tmp_path / "model") as folder:
        (folder / "weights").write_text("new")
        raise RuntimeError("the disk is full")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert (tmp_path / "model/weights").read_text() == "old"


@pytest.mark.slow
def test_clip_on_scenes_that_it_was_not_trained_on(clip):
    found = measure_clip(clip, held_out(400), CLASSES.all)
    assert found["gender swap"] >= 0.95
    assert found["activity of 14"] >= 0.85
    assert found["name of 52"] >= 0.85
    assert found["place of 6"] >= 0.98
    assert found["R@1 image to caption"] >= 0.85
    assert found["R@1 caption to image"] >= 0.85
    assert abs(found["name of 52, women - men"]) <= 0.05
    # A caption's cosine says how well it fits.
    assert found["cosine, own caption"] > found["cosine, other gender"] + 0.1
    assert found["cosine, other gender"] > found["cosine, another scene's"] + 0.1


@pytest.mark.slow
def test_training_writes_three_folders_that_load(tmp_path, monkeypatch):
    monkeypatch.setattr(clip_training, "VOCABULARY_DRAWS", 2)
    monkeypatch.setattr(sentence_model, "CORPUS_DRAWS", 5)
    train_demo_encoders(
        tmp_path,
        DEMO / "tiny-planted",
        resources=ROOT / "resources",
        pool_images=120,
        clip_steps=2,
        sentence_steps=2,
        classifier_steps=2,
    )
    assert load_clip(str(tmp_path / "clip")).encode_texts(["a nurse"]).shape == (1, 128)
    sentences = load_sentence_encoder(str(tmp_path / "sentence-t5"))
    assert sentences.encode_texts(["nurse", "student"]).shape == (2, 64)
    assert AutoModelForImageClassification.from_pretrained(tmp_path / "vit").num_labels == 14
