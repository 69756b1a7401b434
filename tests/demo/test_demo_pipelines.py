"""The committed text-to-image pipelines load like any other, and draw what a caption says."""

from __future__ import annotations

from pathlib import Path

import diffusers
import numpy as np
import pytest
import torch
from safetensors import safe_open

from vlmfair.demo.diffusion_measures import (
    DRAWING,
    Asked,
    CaptionReader,
    agreement,
    draw_captions,
    sample_captions,
)
from vlmfair.demo.diffusion_pipelines import (
    flux_texts,
    sd3_texts,
    train_text_models,
    training_texts,
    word_t5,
)
from vlmfair.demo.diffusion_scenes import draw_pinned, pinned_pool, pinned_scene, scene_captions
from vlmfair.demo.diffusion_train import train_demo_pipelines
from vlmfair.demo.diffusion_training import Stage
from vlmfair.demo.diffusion_transformers import (
    FluxFlow,
    Sd3Flow,
    build_flux_transformer,
    build_sd3_transformer,
)
from vlmfair.demo.people import Person
from vlmfair.demo.scenes import Scene

DEMO = Path(__file__).parents[2] / "resources/demo"
CLASSES = {"tiny-sd3": "StableDiffusion3Pipeline", "tiny-flux": "FluxPipeline"}
MEGABYTE = 1_000_000
READ = "A woman is reading a book in the park."


@pytest.fixture(scope="module", params=CLASSES)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def pipeline(name):
    kind = getattr(diffusers, CLASSES[name])
    loaded = kind.from_pretrained(DEMO / name, dtype=torch.float32, local_files_only=True)
    loaded.set_progress_bar_config(disable=True)
    return loaded


@pytest.fixture(scope="module")
def texts():
    return train_text_models(2, 1)


def pixels(images):
    return np.stack([np.asarray(image, dtype=int) for image in images])


def test_the_weights_are_small_enough_to_commit(name):
    files = [path for path in (DEMO / name).rglob("*") if path.is_file()]
    assert 0 < sum(path.stat().st_size for path in files) <= 8 * MEGABYTE


def test_the_weights_are_committed_in_half_precision(name):
    kinds = set()
    for path in (DEMO / name).rglob("*.safetensors"):
        with safe_open(path, "pt") as weights:
            kinds |= {weights.get_slice(key).get_dtype() for key in weights.offset_keys()}
    assert kinds == {"F16"}


def test_the_same_seed_draws_the_same_image_and_another_seed_another(name, pipeline):
    settings = {**DRAWING[name], "num_inference_steps": 4}
    first = draw_captions(pipeline, [READ], seed=3, **settings)
    again = draw_captions(pipeline, [READ], seed=3, **settings)
    other = draw_captions(pipeline, [READ], seed=4, **settings)
    assert first[0].size == (96, 96)
    assert first[0].tobytes() == again[0].tobytes()
    assert np.abs(pixels(first) - pixels(other)).mean() > 2


def test_an_image_drawn_alone_is_the_one_drawn_in_a_batch_up_to_rounding(name, pipeline):
    settings = {**DRAWING[name], "num_inference_steps": 4}
    told = [READ, "A man is riding a horse at the beach.", "a man dancing with ribbons"]
    together = draw_captions(pipeline, told, seed=0, **settings)
    alone = draw_captions(pipeline, [told[2]], seed=2, **settings)
    assert np.abs(pixels(together)[2] - pixels(alone)[0]).max() <= 1


@pytest.mark.slow
def test_a_demo_model_reads_in_the_images_what_the_captions_say(name, pipeline):
    asked = sample_captions(40, seed=77)
    drawn = draw_captions(pipeline, [a.caption for a in asked], seed=500, **DRAWING[name])
    found = agreement(asked, CaptionReader(DEMO / "tiny-control").read(drawn))
    assert found["gender"] >= 0.88
    assert found["activity"] >= 0.90
    assert found["place"] >= 0.95


def test_agreement_counts_words_and_leaves_out_places_that_no_caption_says():
    asked = [
        Asked("A man is reading a book.", "man", "reading a book", ""),
        Asked("A woman is reading a book in the park.", "woman", "reading a book", "in the park"),
    ]
    told = ["A woman is reading a book in the park.", "A woman is standing in the park."]
    found = agreement(asked, told)
    assert found == {"gender": 0.5, "activity": 0.5, "place": 1.0, "all": 0.0}


def test_sample_captions_name_both_genders_alike_and_say_what_they_ask_for():
    asked = sample_captions(60, seed=1)
    assert sum(a.gender == "woman" for a in asked) == 30
    assert len({a.activity for a in asked}) == 13
    for a in asked:
        assert a.gender in a.caption
        assert a.activity in a.caption
        assert a.place in a.caption


def test_pinned_people_stand_still_and_are_adults():
    rng = np.random.default_rng(4)
    scenes = [pinned_scene(rng) for _ in range(300)]
    assert {person.age // 10 for scene in scenes for person in scene.people} == {2, 3, 4, 5, 6}
    woman = Person("female", 30, 4, "White", "nurse")
    first, second = (draw_pinned(Scene((woman,), "kitchen", seed)) for seed in (1, 2))
    # The head, the trunk and the legs of someone in the middle; furniture may move beside them.
    body = (32, 15, 64, 93)
    inner = pixels([first.crop(body), second.crop(body)])
    assert (inner[0] != inner[1]).any(axis=2).mean() < 0.1


def test_the_captions_of_scenes_are_known_and_short_enough(texts):
    known = training_texts()
    rng = np.random.default_rng(3)
    told = scene_captions([pinned_scene(rng) for _ in range(200)], rng)
    assert set(told) < set(known)
    assert "A man playing a guitar on the stage with another person" in known
    assert max(len(texts.clip_tokenizer(text).input_ids) for text in known[::7]) <= 24
    assert max(len(texts.t5_tokenizer(text).input_ids) for text in known[::7]) <= 24


def test_no_letter_of_a_caption_ends_it_for_the_text_encoder(texts):
    ids = texts.clip_tokenizer("Zoë ¿ 猫 <b>").input_ids
    assert ids.index(texts.clip_tokenizer.eos_token_id) == len(ids) - 1


@pytest.mark.parametrize("kind", ["sd3", "flux"])
def test_one_token_of_padding_stands_for_all_of_it(kind, texts):
    torch.manual_seed(0)
    told = [READ, "a man standing"]
    if kind == "sd3":
        flow, encoded = Sd3Flow(build_sd3_transformer()), sd3_texts(texts, told)
        stock = build_sd3_transformer()
        latents, scale, extra = torch.randn(2, 4, 24, 24), 1000, {}
    else:
        flow = FluxFlow(build_flux_transformer())
        encoded = flux_texts(texts, word_t5(texts, 1), told)
        stock = build_flux_transformer()
        latents, scale = torch.randn(2, 36, 64), 1
        extra = {"img_ids": flow.places, "txt_ids": torch.zeros(24 + 256, 3)}
    stock.load_state_dict(flow.transformer.state_dict())
    sequence, pooled = encoded.sequence.float(), encoded.pooled.float()
    padded = torch.cat([sequence, sequence[:, -1:].expand(-1, 255, -1)], dim=1)
    sigmas = torch.tensor([0.2, 0.7])
    with torch.no_grad():
        ours = flow(latents, sigmas, sequence, pooled, 256)
        theirs = stock(
            hidden_states=latents,
            timestep=scale * sigmas,
            encoder_hidden_states=padded,
            pooled_projections=pooled,
            **extra,
        ).sample
    assert torch.allclose(ours, theirs, atol=1e-5)


@pytest.mark.slow
def test_training_writes_two_folders_that_draw(tmp_path):
    stages = (Stage(2, 1e-3),)
    train_demo_pipelines(
        tmp_path,
        pool_images=64,
        vae_steps=(2, 2),
        text_steps=2,
        sd3_stages=stages,
        flux_stages=stages,
    )
    for name, kind in CLASSES.items():
        loaded = getattr(diffusers, kind).from_pretrained(tmp_path / name, dtype=torch.float32)
        loaded.set_progress_bar_config(disable=True)
        settings = {**DRAWING[name], "num_inference_steps": 1}
        assert draw_captions(loaded, [READ], **settings)[0].size == (96, 96)


def test_the_pool_of_scenes_is_the_same_for_the_same_seed():
    scenes, drawn = pinned_pool(3, 9)
    again, same = pinned_pool(3, 9)
    assert scenes == again
    assert (drawn == same).all()
