"""Pipelines that draw: what is an image, what is cut, short memory, and faulty folders."""

from __future__ import annotations

import gc
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from tiny_drawings import CAPTIONS, GREY, StandIn, asked, draw, generator, own_settings
from tiny_pipelines import CLIP_TOKENS, SAVE, SIZE

from vlmfair.config import check_config, read_yaml
from vlmfair.errors import ConfigError, InferenceError, ModelError
from vlmfair.synthesis.drawing import Asked, Drawer, read_output
from vlmfair.synthesis.gather import check_drawn, count_drawn
from vlmfair.synthesis.generators import (
    Generator,
    make_generator,
    pipeline_digest,
    unready_generators,
)
from vlmfair.synthesis.pipelines import cutting_tokenizers, draw_images, load_pipeline


@pytest.fixture(scope="session", params=sorted(SAVE))
def folder(request: Any, tmp_path_factory: Any) -> Path:
    """A pipeline of each class."""
    return Path(SAVE[request.param](tmp_path_factory.mktemp(request.param)))


@pytest.fixture(scope="session")
def sd3(tmp_path_factory: Any) -> Path:
    return SAVE["StableDiffusion3Pipeline"](tmp_path_factory.mktemp("sd3"))


# What is an image


def outcome(pixels: Any, refused: bool = False) -> tuple[str, str]:
    drawing = read_output(pixels, refused, 1)
    assert (drawing.png is not None) == (drawing.status == "ok")
    return drawing.status, drawing.detail


def test_an_output_is_an_image_or_says_why_it_is_none() -> None:
    hole, endless = GREY.copy(), GREY.copy()
    hole[:16], endless[0, 0, 0] = np.nan, np.inf

    assert outcome(GREY) == ("ok", "")
    assert outcome(GREY, refused=True) == ("refused", "the pipeline's safety checker refused it")
    assert outcome(None) == ("refused", "the pipeline gave no image")
    assert outcome(np.zeros_like(GREY)) == ("uniform", "every pixel is (0, 0, 0)")
    assert outcome(np.full_like(GREY, 0.5)) == ("uniform", "every pixel is (128, 128, 128)")
    # Beyond 1 all of it is white.
    assert outcome(GREY + 3.0) == ("uniform", "every pixel is (255, 255, 255)")
    assert outcome(hole) == ("not_a_number", "50% of its pixels are no numbers")
    assert outcome(endless)[0] == "not_a_number"


def test_one_pixel_that_differs_makes_an_image_of_its_own_bytes(tmp_path: Path) -> None:
    pixels = np.zeros_like(GREY)
    pixels[3, 5] = (1.0, 0.5, 0.25)

    png = read_output(pixels, False, 1).png

    (tmp_path / "image.png").write_bytes(png or b"")
    with Image.open(tmp_path / "image.png") as image:
        assert image.getpixel((5, 3)) == (255, 128, 64)
        assert image.size == (SIZE, SIZE)


def test_refusals_and_faults_are_recorded_and_no_black_image_takes_their_place(
    tmp_path: Path,
) -> None:
    class WithChecker(StandIn):
        def __call__(self, prompt: list[str], **options: Any) -> Any:
            output = super().__call__(prompt, **options)
            output.nsfw_content_detected = ["nude" in text for text in prompt]
            return output

    def paint(prompt: str, seed: int) -> Any:
        if "number 1" in prompt:
            return np.full_like(GREY, np.nan)
        if "number 3" in prompt:
            raise ValueError("index out of range in self")
        return np.zeros_like(GREY) if "nude" in prompt or "number 2" in prompt else GREY

    captions = ["A nude man.", *[f"A man number {n}." for n in (1, 2, 3, 4)]]
    own = own_settings(tmp_path, batch_size=2)
    table, _ = draw(asked(captions), own, tmp_path / "store", load=lambda _: WithChecker(paint))

    statuses = ["refused", "not_a_number", "uniform", "failed", "ok"]
    assert table["status"].to_pylist() == statuses
    assert table["detail"].to_pylist()[3] == "index out of range in self"
    assert [image is None for image in table["image"].to_pylist()] == [True] * 4 + [False]
    counts = {"captions": 5, "drawn": 1, "refused": 1, "failed": 3, "truncated": 0}
    assert count_drawn(table) == counts
    with pytest.raises(InferenceError, match=r"tiny: 4 of 5 captions have no image \(first: refu"):
        check_drawn(table, 0.5, "tiny")
    check_drawn(table, 0.8, "tiny")
    # Nothing of them is kept: the next run tries again.
    _, manifest = draw(asked(captions), own, tmp_path / "store", load=lambda _: StandIn())
    assert manifest["images"] == {"stored": 1, "asked": 4}


def test_a_real_pipeline_with_damaged_numbers_gives_no_image(sd3: Path, tmp_path: Path) -> None:
    def damaged(own: Generator) -> Any:
        pipeline = load_pipeline(own)
        pipeline.transformer.proj_out.weight.data[0, 0] = torch.nan
        return pipeline

    table, _ = draw(asked(CAPTIONS[:2]), generator(sd3), tmp_path / "store", load=damaged)

    assert table["status"].to_pylist() == ["not_a_number"] * 2


# Captions that are too long


def test_a_caption_beyond_the_limit_is_recorded_as_cut_and_drawn(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    own = generator(folder)
    pipeline = load_pipeline(own)
    one_token = " horse" * 30
    start = "A man rides a horse."
    longer = f"{start}{one_token}"

    table, _ = draw(asked([start, longer]), own, tmp_path / "store", load=lambda _: pipeline)

    clip = {"FluxPipeline": "tokenizer", "StableDiffusion3Pipeline": "tokenizer,tokenizer_2"}
    assert table["truncated"].to_pylist() == [False, True]
    assert table["truncated_by"].to_pylist() == ["", clip[own.pipeline]]
    assert table["status"].to_pylist() == ["ok", "ok"]
    assert count_drawn(table)["truncated"] == 1
    # What is said of a stored image is what was said when it was drawn.
    again, _ = draw(asked([start, longer]), own, tmp_path / "store", load=lambda _: pipeline)
    assert again.equals(table)


def test_the_limits_are_those_of_the_pipeline_itself(folder: Path) -> None:
    own = generator(folder, max_tokens=12)
    pipeline = load_pipeline(own)
    count = {
        name: lambda text, name=name: len(getattr(pipeline, name)(text).input_ids)
        for name in ("tokenizer", "tokenizer_2")
    }
    text = "A"
    while count["tokenizer"](text + " man") <= CLIP_TOKENS:
        text += " man"

    within, beyond = (cutting_tokenizers(pipeline, own, t) for t in (text, text + " man"))

    # T5's limit is the setting, which both are beyond; CLIP's is reached exactly by the first.
    t5 = ("tokenizer_2",) if own.pipeline == "FluxPipeline" else ("tokenizer_3",)
    assert within == t5
    assert "tokenizer" in beyond
    # The pipeline itself says the same about the text it encodes.
    assert len(pipeline.encode_prompt(*([text] * (3 - (t5 == ("tokenizer_2",)))))[0]) == 1


# Memory


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """A pretended GPU with so many bytes free."""
    free = {"bytes": 10**9}
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (free["bytes"], 10**10))
    # Collecting garbage takes long in a process with many modules.
    monkeypatch.setattr(gc, "collect", lambda: 0)
    return free


def short_of_memory(until: int) -> tuple[StandIn, Drawer]:
    """A pipeline that runs out of memory so many times, on a pretended GPU."""
    tries = iter(range(until))

    class Short(StandIn):
        def __call__(self, prompt: list[str], **options: Any) -> Any:
            if next(tries, None) is not None:
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
            return super().__call__(prompt, **options)

    pipeline = Short()
    own = Generator("tiny", "FluxPipeline", 2, 3.0, SIZE, SIZE, "float32", path=".", batch_size=4)
    return pipeline, Drawer(pipeline, own, "cuda:0")


def test_out_of_memory_offloads_then_takes_smaller_batches(gpu: dict[str, int]) -> None:
    pipeline, drawer = short_of_memory(4)
    waiting = [Asked(caption, number) for number, caption in enumerate(CAPTIONS)]

    drawn = [one for batch in drawer.draw(waiting) for one in batch]

    assert [one for one, _ in drawn] == waiting
    assert {drawing.status for _, drawing in drawn} == {"ok"}
    assert pipeline.moves == ["cuda:0", "by part", "by layer"]
    assert drawer.given_up == [
        "offload model, batch_size 4",
        "offload model, batch_size 2",
        "offload model, batch_size 1",
        "offload sequential, batch_size 1",
    ]


def test_out_of_memory_with_one_image_and_nothing_left_is_a_sentence(gpu: dict[str, int]) -> None:
    _, drawer = short_of_memory(99)

    with pytest.raises(InferenceError) as told:
        list(drawer.draw([Asked(CAPTIONS[0], 1)]))

    assert str(told.value) == (
        "tiny: memory does not suffice to draw one image of 32 x 32 pixels on cuda:0. In "
        "vl_bicle.synthesis.generators, lower height and width or write dtype: bfloat16; or use a "
        "machine with more memory. The images that are drawn are kept."
    )


def test_weights_that_fill_the_gpu_are_offloaded_from_the_start(gpu: dict[str, int]) -> None:
    # 20 float32 numbers; 80 bytes are more than four fifths of 99.
    gpu["bytes"] = 99

    pipeline, drawer = short_of_memory(0)

    assert (drawer.placement, pipeline.moves) == ("model", ["by part"])


def test_an_offloaded_pipeline_draws_the_same_image(folder: Path) -> None:
    own = generator(folder)
    plain, offloaded = load_pipeline(own), load_pipeline(own)
    # The CPU stands in for a GPU: parts are moved by the same hooks.
    offloaded.enable_model_cpu_offload(device="cpu")

    images = [draw_images(one, own, ["A man."], [5])[0][0] for one in (plain, offloaded)]

    assert images[0] is not None
    # Up to rounding: weights lie elsewhere in memory.
    assert images[1] == pytest.approx(images[0], abs=1e-5)


def test_without_offload_only_the_batch_gets_smaller(gpu: dict[str, int]) -> None:
    class Full(StandIn):
        def __call__(self, prompt: list[str], **options: Any) -> Any:
            raise MemoryError

    own = Generator("tiny", "FluxPipeline", 2, 3.0, SIZE, SIZE, "float32", path=".", batch_size=2)
    drawer = Drawer(Full(), own, "cpu")

    with pytest.raises(InferenceError, match="does not suffice to draw one image"):
        list(drawer.draw([Asked(CAPTIONS[0], 1)]))

    assert drawer.given_up == ["offload never, batch_size 1"]


# Pipelines that cannot be used


def test_a_pipeline_of_another_class_is_not_loaded(sd3: Path) -> None:
    with pytest.raises(ModelError, match="StableDiffusion3Pipeline, and the config says FluxPipe"):
        load_pipeline(generator(sd3, pipeline="FluxPipeline"))


@pytest.mark.parametrize("part", ["text_encoder", "text_encoder_3", "transformer", "vae"])
@pytest.mark.parametrize("fault", ["a tensor is missing", "cut off", "a file is missing"])
def test_incomplete_weights_are_refused(sd3: Path, tmp_path: Path, part: str, fault: str) -> None:
    from safetensors.torch import load_file, save_file

    shutil.copytree(sd3, tmp_path / "broken")
    (file,) = (tmp_path / "broken" / part).glob("*.safetensors")
    if fault == "a tensor is missing":
        weights = load_file(file)
        wide = (k for k in weights if k.endswith("weight") and weights[k].ndim > 1)
        del weights[sorted(wide)[3]]
        save_file(weights, file, metadata={"format": "pt"})
    elif fault == "cut off":
        file.write_bytes(file.read_bytes()[:500])
    else:
        file.unlink()

    with pytest.raises(ModelError, match=r"Download (it|the pipeline) again"):
        load_pipeline(generator(tmp_path / "broken"))


def test_folders_that_are_no_pipeline_are_told_apart(sd3: Path, tmp_path: Path) -> None:
    memory = tmp_path / "memory.json"
    shutil.copytree(sd3, tmp_path / "partial")
    shutil.rmtree(tmp_path / "partial" / "vae")
    (tmp_path / "empty").mkdir()

    with pytest.raises(ModelError, match="lacks vae, which model_index.json lists"):
        pipeline_digest(generator(tmp_path / "partial"), memory)
    with pytest.raises(ModelError, match="has no model_index.json"):
        pipeline_digest(generator(tmp_path / "empty"), memory)
    with pytest.raises(ModelError, match="the folder .* is missing"):
        pipeline_digest(generator(tmp_path / "nowhere"), memory)
    names = {"a": generator(tmp_path / "empty"), "b": generator(sd3)}
    assert unready_generators(names).startswith(
        "config: vl_bicle.synthesis.generators: 1 of 2 cannot draw yet: a (no model_index.json in"
    )
    assert unready_generators({"b": names["b"]}) == ""


SETTINGS = {
    "pipeline": "StableDiffusion3Pipeline",
    "steps": 2,
    "guidance": 3.0,
    "height": SIZE,
    "width": SIZE,
    "dtype": "float32",
}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, "path or repository says where the pipeline is"),
        ({"path": "a", "repository": "b/c"}, "path or repository says where the pipeline is"),
        ({"path": "a", "pipeline": "UnCLIPPipeline"}, "Write one of FluxPipeline, StableDiff"),
        ({"path": "a", "true_guidance": 2.0}, "true_guidance is FluxPipeline's"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(
    changes: dict[str, Any], says: str
) -> None:
    with pytest.raises(ConfigError, match=f"generators: sd35l: .*{says}"):
        make_generator("sd35l", {**SETTINGS, **changes})


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"guidence": 2.0}, "flux: guidence is not a known key. Write guidance."),
        ({"pipeline": "UnCLIPPipeline"}, "Write FluxPipeline or StableDiffusion3Pipeline."),
        ({"revision": "main"}, "Write 40-hex commit of the repository."),
        ({"height": 100}, "Write a number of pixels, a multiple of 8."),
        ({"steps": 0}, "Write a positive number of steps."),
    ],
)
def test_a_slip_in_a_generators_section_is_told(
    root: Path, changes: dict[str, Any], says: str
) -> None:
    config = read_yaml(root / "config/config.yaml")
    generators = config["vl_bicle"]["synthesis"]["generators"]
    schema = root / "config/schemas/config.schema.json"
    generators["flux"], generators["sd35l"] = {**SETTINGS, "path": "a"}, None
    check_config(config, schema, "config")

    generators["flux"] |= changes

    with pytest.raises(ConfigError) as told:
        check_config(config, schema, "config")
    assert "vl_bicle.synthesis.generators.flux" in str(told.value)
    assert says in str(told.value)


def test_a_repository_without_a_commit_cannot_draw() -> None:
    own = make_generator("sd35l", {**SETTINGS, "repository": "stabilityai/sd"})

    assert "1 of 1 cannot draw yet: sd35l (no revision)" in unready_generators({"sd35l": own})
