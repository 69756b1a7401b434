"""The two committed models load like any other, and answer as their packed training saw it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForImageTextToText, AutoProcessor

from vlmfair.demo import questions
from vlmfair.demo.dialogues import Turn
from vlmfair.demo.language import Stage
from vlmfair.demo.planted import load_planted
from vlmfair.demo.reader import Reader
from vlmfair.demo.scenes import draw, sample_scene
from vlmfair.demo.train import train
from vlmfair.papers.gras.questions import load_prompts

ROOT = Path(__file__).parents[2]
MODELS = ("tiny-planted", "tiny-control")
PROMPTS = load_prompts(ROOT / "resources/prompts/gras.yaml")
TABLE = load_planted(ROOT / "resources/demo/planted.yaml")


def folder(name: str) -> Path:
    return ROOT / "resources/demo" / name


@pytest.fixture(scope="module", params=MODELS)
def loaded(request):
    path = folder(request.param)
    model = AutoModelForImageTextToText.from_pretrained(path, dtype=torch.float32).eval()
    return AutoProcessor.from_pretrained(path), model


@pytest.mark.parametrize("name", MODELS)
def test_the_weights_are_small_enough_to_commit(name):
    assert (folder(name) / "model.safetensors").stat().st_size <= 4 * 1024**2


def test_both_models_share_one_vision_tower():
    towers = [
        AutoModelForImageTextToText.from_pretrained(folder(name)).model.vision_tower.state_dict()
        for name in MODELS
    ]
    assert all(torch.equal(towers[0][key], towers[1][key]) for key in towers[0])


def test_answers_that_are_scored_are_single_tokens_of_their_own(loaded):
    processor, _ = loaded
    forms = [*PROMPTS.labels, " his", " her", " he", " she", " man", " woman", " person"]
    ids = [processor.tokenizer.encode(form, add_special_tokens=False) for form in forms]
    assert all(len(found) == 1 for found in ids)
    assert len({found[0] for found in ids}) == len(forms)
    text = "USER: \nASSISTANT:"
    with_answer = processor.tokenizer.encode(text + " Yes", add_special_tokens=False)
    assert with_answer[:-1] == processor.tokenizer.encode(text, add_special_tokens=False)


def test_the_chat_template_is_that_of_llava(loaded):
    processor, _ = loaded
    messages = [
        {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "Q?"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "A."}]},
        {"role": "user", "content": [{"type": "image"}]},
    ]
    rendered = processor.apply_chat_template(messages, add_generation_prompt=True)
    assert rendered == "USER: <image>\nQ? ASSISTANT: A. USER: <image>\nASSISTANT:"


@pytest.mark.parametrize("size", [(96, 96), (224, 224), (300, 200), (130, 170)])
def test_the_processor_takes_images_of_any_shape(loaded, size):
    processor, _ = loaded
    image = draw(sample_scene(np.random.default_rng(1)), 224).resize(size)
    inputs = processor(images=image, text="USER: <image>\nQ? ASSISTANT:", return_tensors="pt")
    assert tuple(inputs["pixel_values"].shape) == (1, 3, 96, 96)
    image_token = processor.tokenizer.convert_tokens_to_ids("<image>")
    assert int((inputs["input_ids"] == image_token).sum()) == 36


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("style", ["released", "paper"])
def test_packed_questions_get_the_answers_of_plain_forwards(name, style):
    # Given one scene and three traits, when asked packed and one by one through the processor,
    # then the probabilities of Yes agree.
    scene = sample_scene(np.random.default_rng(8))
    traits = ("kind", "narrow-minded", "brave")
    asked = [questions.trait_question(scene, trait, 2, style, PROMPTS, TABLE) for trait in traits]
    packed = Reader(folder(name)).ask([scene], [[[Turn(0, q, " No")] for q in asked]])[0]
    processor = AutoProcessor.from_pretrained(folder(name))
    model = AutoModelForImageTextToText.from_pretrained(folder(name), dtype=torch.float32).eval()
    for question, answer in zip(asked, packed, strict=True):
        text = f"USER: <image>\n{question.text} ASSISTANT:"
        inputs = processor(images=draw(scene), text=text, return_tensors="pt")
        with torch.no_grad():
            said = torch.softmax(model(**inputs).logits[0, -1], dim=-1)
        yes = processor.tokenizer.encode(" Yes", add_special_tokens=False)[0]
        assert float(said[yes]) == pytest.approx(answer[" Yes"], abs=1e-4)


def test_a_caption_is_a_sentence_about_the_scene(loaded):
    processor, model = loaded
    scene = sample_scene(
        np.random.default_rng(3),
        gender="female",
        occupation="student",
        place="park",
        two=False,
        hooded=False,
    )
    text = "USER: <image>\nDescribe the image in one sentence. ASSISTANT:"
    inputs = processor(images=draw(scene, 224), text=text, return_tensors="pt")
    with torch.no_grad():
        ids = model.generate(**inputs, max_new_tokens=24, do_sample=False)
    said = processor.tokenizer.decode(ids[0, inputs["input_ids"].shape[1] :])
    assert said == " A woman is reading a book in the park.</s>"


def test_every_demonstration_count_of_the_papers_fits_the_context(loaded):
    processor, model = loaded
    turn = "USER: <image>\nDescribe the image in one sentence. ASSISTANT: A man is singing. "
    text = turn * 8 + "USER: <image>\nDescribe the image in one sentence. ASSISTANT:"
    images = [draw(sample_scene(np.random.default_rng(n))) for n in range(9)]
    inputs = processor(images=images, text=text, return_tensors="pt")
    assert inputs["input_ids"].shape[1] < model.config.get_text_config().max_position_embeddings
    with torch.no_grad():
        assert bool(torch.isfinite(model(**inputs).logits).all())


def test_training_writes_a_folder_that_loads_and_shares_its_tower(tmp_path):
    # Given a training of a few steps, when the control continues from the planted model, then both
    # folders load, share the vision tower, and differ in the language model.
    stages = (Stage(2, 2, 1e-3, {"traits": 1, "contexts": 1}, reading_steps=1),)
    common = {
        "planted_table": ROOT / "resources/demo/planted.yaml",
        "prompts": ROOT / "resources/prompts/gras.yaml",
        "vision": tmp_path / "tower.safetensors",
        "pool_images": 150,
        "vision_steps": (1, 1),
        "stages": stages,
    }
    train(tmp_path / "planted", control=False, **common)
    train(tmp_path / "control", control=True, start=tmp_path / "planted", **common)
    states = [
        AutoModelForImageTextToText.from_pretrained(tmp_path / name).state_dict()
        for name in ("planted", "control")
    ]
    same = {key: torch.equal(states[0][key], states[1][key]) for key in states[0]}
    assert all(equal for key, equal in same.items() if "vision_tower" in key)
    assert not all(same.values())
    assert AutoProcessor.from_pretrained(tmp_path / "control").tokenizer.eos_token == "</s>"
