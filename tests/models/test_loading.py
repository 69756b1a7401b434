"""Loading: what is loaded is what the entry says, and what cannot be loaded says why."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_llava import tiny_entry

from vlmfair.errors import ModelError
from vlmfair.models.chat import ChatRenderer, ImageRef, Turn
from vlmfair.models.families import load_family
from vlmfair.models.loading import check_gpus, load_model, load_processor
from vlmfair.papers.lvlm_fairness.questions import load_classes, load_prompts


@pytest.fixture
def copy(model_folder: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "copy"
    shutil.copytree(model_folder, folder)
    return folder


def test_a_model_is_loaded_as_its_entry_says(model_folder: Path) -> None:
    loaded = load_processor(tiny_entry(model_folder, attention="eager", image_backend="pil"))
    model = load_model(loaded, "cpu")

    assert model.dtype == torch.float32
    assert model.config.text_config._attn_implementation == "eager"
    assert not model.training
    assert loaded.processor.image_processor.backend == "pil"
    assert loaded.settings()["image_processor"] == "CLIPImageProcessorPil"
    assert loaded.context_length == 512


def test_fewer_gpus_than_a_model_needs_are_said_before_it_is_loaded(model_folder: Path) -> None:
    entry = tiny_entry(model_folder, gpus=2)

    with pytest.raises(ModelError, match=r"needs 2 GPUs .* no more than 1\. Run with --resources"):
        check_gpus(entry, 1)
    check_gpus(entry, 2)
    # On a machine without any, the CPU is asked.
    check_gpus(entry, 0)


def test_the_entry_may_shorten_the_context(model_folder: Path) -> None:
    assert load_processor(tiny_entry(model_folder, context_length=64)).context_length == 64


def test_a_family_without_a_module_names_those_there_are() -> None:
    with pytest.raises(ModelError, match=r"'mamba'\. Use one of the families there are \(.*llava"):
        load_family("mamba", "mine")


def test_a_converted_sharegpt4v_is_loaded_as_llava_and_asked_as_its_own_script_asks(
    root: Path, model_folder: Path
) -> None:
    entry = tiny_entry(model_folder, family="sharegpt4v")
    classes = load_classes(root / "resources/words/facet_classes.csv")
    prompts = load_prompts(root / "resources/prompts/lvlm_fairness.yaml", classes)
    text = prompts.user_text(entry.family, "released", "p2", "nurse")

    loaded = load_processor(entry)
    renderer = ChatRenderer(loaded.processor, loaded.family, entry.name)
    image = ImageRef("noise.png", "0" * 64)
    rendered = renderer.render((Turn("user", text, (image,)),), rendering="raw")

    assert load_model(loaded, "cpu").config.architectures == ["LlavaForConditionalGeneration"]
    assert prompts.rendering(entry.family, "released") == "raw"
    # The frame of the released script, not LLaVA's "<image>\nUSER: ...".
    assert text.startswith("A chat between a curious human and an artificial intelligence")
    assert text.endswith("A. Yes, B. No, C. Unknown.###Assistant:")
    image_token = loaded.processor.tokenizer.convert_tokens_to_ids("<image>")
    assert list(rendered.ids).count(image_token) == 1


def test_another_architecture_than_the_familys_is_refused(copy: Path) -> None:
    config = (copy / "config.json").read_text()
    (copy / "config.json").write_text(config.replace("LlavaFor", "LlavaNextFor"))

    with pytest.raises(ModelError, match=r"LlavaNextForConditionalGeneration.*Correct family"):
        load_processor(tiny_entry(copy))


@pytest.mark.parametrize(
    ("missing", "sentence"),
    [
        ("config.json", "has no config.json. Put the whole model folder there"),
        ("tokenizer.json", "has no tokenizer. Add the model's tokenizer.json"),
        ("processor_config.json", "Download tokenizer.json"),
    ],
)
def test_a_missing_file_is_named(copy: Path, missing: str, sentence: str) -> None:
    (copy / missing).unlink()

    with pytest.raises(ModelError) as caught:
        load_processor(tiny_entry(copy))

    assert sentence in str(caught.value)


def test_missing_weights_are_named(copy: Path) -> None:
    loaded = load_processor(tiny_entry(copy))
    (copy / "model.safetensors").unlink()

    with pytest.raises(ModelError, match=r"no weights in the safetensors format\. Download"):
        load_model(loaded, "cpu")


def test_a_truncated_weight_file_is_named(copy: Path) -> None:
    weights = copy / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])

    with pytest.raises(ModelError, match=r"is damaged \(.*\)\. Download it again"):
        load_model(load_processor(tiny_entry(copy)), "cpu")


def test_an_incomplete_weight_file_is_not_filled_with_random_numbers(copy: Path) -> None:
    weights = load_file(copy / "model.safetensors")
    dropped = next(name for name in sorted(weights) if name.endswith("q_proj.weight"))
    del weights[dropped]
    save_file(weights, copy / "model.safetensors", metadata={"format": "pt"})

    with pytest.raises(ModelError, match=r"lack or misshape 1 tensors \(first .*q_proj"):
        load_model(load_processor(tiny_entry(copy)), "cpu")


def test_float16_on_a_cpu_is_refused(model_folder: Path) -> None:
    loaded = load_processor(tiny_entry(model_folder, dtype="float16"))

    with pytest.raises(ModelError, match="Write dtype: float32"):
        load_model(loaded, "cpu")
