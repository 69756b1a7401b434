"""Families with remote code, asked through local stand-ins that have the published interfaces.

The real checkpoints cannot be downloaded in a test. The stand-ins take the arguments, and have the
side effects, of the published code; `own_inputs` builds inputs as that code's own processors do.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from PIL import Image
from tiny_parts import seed_weights
from transformers import GenerationConfig

from vlmfair.contracts import REQUESTS
from vlmfair.errors import ModelError
from vlmfair.inference.engine import open_engine
from vlmfair.inference.queries import Query
from vlmfair.inference.shard import answer_shard
from vlmfair.models.chat import ChatRenderer, ImageRef, Turn
from vlmfair.models.loading import LoadedProcessor, load_model, load_processor
from vlmfair.models.registry import ModelEntry

CODE = Path(__file__).parent.parent / "remote_models" / "stand_in.py"
# family: model, automatic class, tokenizer, image processor
CLASSES = {
    "qwen_vl_v1": ("QWenLMHeadModel", "AutoModelForCausalLM", "QWenTokenizer", None),
    "phi3_5_vision": (
        "Phi3VForCausalLM",
        "AutoModelForCausalLM",
        "Phi3VTokenizer",
        "Phi3VImageProcessor",
    ),
    "minicpm_v": ("MiniCPMV", "AutoModel", "MiniCPMVTokenizer", "MiniCPMVImageProcessor"),
    "minicpm_o": ("MiniCPMO", "AutoModel", "MiniCPMVTokenizer", "MiniCPMVImageProcessor"),
}
# transformers names a folder's code by the folder: each checkpoint has a commit of its own.
COMMITS = {family: f"{number + 10:040x}" for number, family in enumerate(CLASSES)}
SIZES = ((40, 30), (20, 30), (70, 20))
DEMONSTRATION = "The nurse and his patient."
QUESTION = "Is the person honest?"
PROMPTS = {
    "qwen_vl_v1": (
        "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n"
        "<|im_start|>user\nPicture 1: {0}\nDescribe.<|im_end|>\n"
        "<|im_start|>assistant\nThe nurse and his patient.<|im_end|>\n"
        "<|im_start|>user\nPicture 1: {1}\nPicture 2: {2}\nIs the person honest?<|im_end|>\n"
        "<|im_start|>assistant\n"
    ),
    "phi3_5_vision": (
        "<|user|>\n{0}\nDescribe.<|end|>\n<|assistant|>\nThe nurse and his patient.<|end|>\n"
        "<|user|>\n{1}\n{2}\nIs the person honest?<|end|>\n<|assistant|>\n"
    ),
    "minicpm_v": (
        "<|im_start|>user\n{0}\nDescribe.<|im_end|>\n"
        "<|im_start|>assistant\nThe nurse and his patient.<|im_end|>\n"
        "<|im_start|>user\n{1}\n{2}\nIs the person honest?<|im_end|>\n<|im_start|>assistant\n"
    ),
}
PROMPTS["minicpm_o"] = PROMPTS["minicpm_v"]


def stand_in() -> Any:
    spec = importlib.util.spec_from_file_location("stand_in_models", CODE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write_snapshot(cache: Path, family: str, owner: str = "owner") -> Path:
    """A checkpoint with its own code, where a download of the pinned commit would have put it."""
    model_name, auto, tokenizer, image_processor = CLASSES[family]
    name = f"models--{owner}--{family.replace('_', '-')}"
    folder = cache / name / "snapshots" / COMMITS[family]
    module = stand_in()
    config = module.StandInConfig(vocab_size=300)
    if family == "qwen_vl_v1":
        config.visual = {"image_size": 8, "image_start_id": 259}
    model = getattr(module, model_name)(config)
    seed_weights(model, 0, scale=0.4)
    model.save_pretrained(folder)
    shutil.copy(CODE, folder / "stand_in.py")
    settings = json.loads((folder / "config.json").read_text())
    settings["auto_map"] = {
        "AutoConfig": "stand_in.StandInConfig",
        auto: f"stand_in.{model_name}",
    }
    (folder / "config.json").write_text(json.dumps(settings))
    maps = {"AutoTokenizer": [f"stand_in.{tokenizer}", None]}
    (folder / "tokenizer_config.json").write_text(json.dumps({"auto_map": maps}))
    name = "qwen.tiktoken" if family == "qwen_vl_v1" else "tokenizer.json"
    (folder / name).write_text("{}")
    if image_processor:
        maps = {"AutoImageProcessor": f"stand_in.{image_processor}"}
        (folder / "preprocessor_config.json").write_text(json.dumps({"auto_map": maps}))
    return folder


def entry(family: str, **changes: object) -> ModelEntry:
    settings: dict[str, Any] = {
        "name": family,
        "family": family,
        "repository": f"owner/{family.replace('_', '-')}",
        "revision": COMMITS[family],
        "trust_remote_code": True,
        "dtype": "float32",
        "attention": "eager",
        "image_backend": "pil",
        **changes,
    }
    return ModelEntry(**settings)


@pytest.fixture(scope="module")
def caches(tmp_path_factory: pytest.TempPathFactory) -> Any:
    root = tmp_path_factory.mktemp("hub")
    patch = pytest.MonkeyPatch()
    patch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(root))
    modules = str(tmp_path_factory.mktemp("modules"))
    patch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", modules)
    patch.syspath_prepend(modules)
    yield root
    patch.undo()


@pytest.fixture(scope="module")
def load(caches: Path) -> Callable[[str], tuple[LoadedProcessor, Any]]:
    known: dict[str, tuple[LoadedProcessor, Any]] = {}

    def loaded(family: str) -> tuple[LoadedProcessor, Any]:
        if family not in known:
            write_snapshot(caches, family)
            processor = load_processor(entry(family))
            known[family] = (processor, load_model(processor, "cpu"))
        return known[family]

    return loaded


def draw(seed: int) -> Image.Image:
    width, height = SIZES[seed]
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(pixels)


REF = ImageRef("noise.png", "0" * 64)
TURNS = (
    Turn("user", "Describe.", (REF,)),
    Turn("assistant", DEMONSTRATION),
    Turn("user", QUESTION, (REF, REF)),
)


def own_inputs(family: str, module: Any, images: list[Image.Image], folder: Path) -> dict[str, Any]:
    """The inputs of a conversation with three images, as the published code makes them."""
    template = PROMPTS[family]
    if family == "qwen_vl_v1":
        names = []
        for number, image in enumerate(images):
            image.save(folder / f"{number}.png")
            names.append(f"<img>{number}.png</img>")
        ids = module.QWenTokenizer()(template.format(*names))["input_ids"]
        return {"input_ids": torch.tensor([ids])}
    if family == "phi3_5_vision":
        text = template.format("<|image_1|>", "<|image_2|>", "<|image_3|>")
        processed = module.Phi3VImageProcessor()(images)
        tokenizer, row = module.Phi3VTokenizer(), []
        pieces = [tokenizer(piece)["input_ids"] for piece in re.split(r"<\|image_\d+\|>", text)]
        for number, piece in enumerate(pieces):
            row += piece
            if number < len(images):
                row += [-(number + 1)] * processed["num_img_tokens"][number]
        names = ("pixel_values", "image_sizes")
        return {"input_ids": torch.tensor([row]), **{name: processed[name] for name in names}}
    processor = module.MiniCPMVImageProcessor()
    texts = [
        processor.get_slice_image_placeholder(image.size, number)
        for number, image in enumerate(images)
    ]
    ids = torch.tensor([module.MiniCPMVTokenizer()(template.format(*texts))["input_ids"]])
    tokenizer = module.MiniCPMVTokenizer()
    starts = (ids[0] == tokenizer.im_start_id) | (ids[0] == tokenizer.slice_start_id)
    ends = (ids[0] == tokenizer.im_end_id) | (ids[0] == tokenizer.slice_end_id)
    bounds = torch.hstack([torch.where(starts)[0][:, None] + 1, torch.where(ends)[0][:, None]])
    processed = processor([images])
    data = {
        "input_ids": ids,
        "pixel_values": processed["pixel_values"],
        "tgt_sizes": processed["tgt_sizes"],
        "image_bound": [bounds],
        "position_ids": torch.arange(ids.shape[1])[None],
    }
    return {"data": data}


def ours(loaded: LoadedProcessor, images: list[Image.Image]) -> tuple[tuple[int, ...], list[Any]]:
    renderer = ChatRenderer(loaded.processor, loaded.family, loaded.entry.name)
    processed = [loaded.family.process_image(loaded.processor, image) for image in images]
    prompt = renderer.render(TURNS)
    return renderer.expand(prompt, tuple(image.replacement for image in processed)), processed


@pytest.mark.parametrize("family", CLASSES)
def test_ids_and_logits_equal_those_of_the_models_own_way(
    load: Callable[[str], tuple[LoadedProcessor, Any]],
    family: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded, model = load(family)
    images = [draw(seed) for seed in range(3)]
    monkeypatch.chdir(tmp_path)
    inputs = own_inputs(family, stand_in(), images, tmp_path)
    own_ids = inputs.get("data", inputs)["input_ids"].clone()

    ids, processed = ours(loaded, images)
    with torch.inference_mode():
        expected = model(**inputs).logits[0, -1]
        found = loaded.family.next_token_logits(
            model, torch.tensor([ids]), loaded.family.join_images(processed)
        )

    if family == "qwen_vl_v1":
        # Our path is a fixed word instead of a file's name; everything else is the same.
        paths = [place for place in range(len(ids)) if ids[place] != own_ids[0, place]]
        assert len(ids) == own_ids.shape[1]
        assert all(own_ids[0, place] < 256 or ids[place] < 256 for place in paths)
    else:
        assert list(ids) == own_ids[0].tolist()
    torch.testing.assert_close(found[0], expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("family", CLASSES)
def test_prompts_of_a_batch_keep_their_own_images(
    load: Callable[[str], tuple[LoadedProcessor, Any]], family: str
) -> None:
    loaded, model = load(family)
    first, second = ([draw(seed) for seed in order] for order in ((0, 0, 1), (0, 0, 1)))
    second[2] = second[2].rotate(180)
    (ids, one), (_, two) = ours(loaded, first), ours(loaded, second)
    row = torch.tensor([ids])

    with torch.inference_mode():
        ask = loaded.family.next_token_logits
        alone = [ask(model, row, loaded.family.join_images(images)) for images in (one, two)]
        both = ask(model, torch.cat([row, row]), loaded.family.join_images([*one, *two]))

    torch.testing.assert_close(both, torch.cat(alone), rtol=0, atol=1e-6)
    assert (both[0] - both[1]).abs().max() > 1e-4


@pytest.mark.parametrize("family", CLASSES)
def test_new_tokens_equal_a_loop_of_whole_forwards(
    load: Callable[[str], tuple[LoadedProcessor, Any]], family: str
) -> None:
    loaded, model = load(family)
    ids, processed = ours(loaded, [draw(seed) for seed in range(3)])
    images = loaded.family.join_images(processed)
    row, expected = torch.tensor([ids]), []
    config = GenerationConfig(max_new_tokens=4, do_sample=False)

    with torch.inference_mode():
        found = loaded.family.new_tokens(model, row, images, generation_config=config)
        for _ in range(4):
            token = loaded.family.next_token_logits(model, row, images).argmax(-1, keepdim=True)
            expected.append(int(token))
            row = torch.cat([row, token], dim=1)

    assert found.tolist() == [expected]


@pytest.mark.parametrize("family", CLASSES)
def test_the_engine_asks_them_by_whole_forwards(
    load: Callable[[str], tuple[LoadedProcessor, Any]], family: str, tmp_path: Path
) -> None:
    loaded, model = load(family)
    path = tmp_path / "noise.png"
    draw(0).save(path)
    ref = ImageRef(str(path), hashlib.sha256(path.read_bytes()).hexdigest())
    renderer = ChatRenderer(loaded.processor, loaded.family, loaded.entry.name)
    engine = open_engine(loaded, renderer, model=model)
    turns = (Turn("user", QUESTION, (ref,)),)

    (scored,) = engine.score([Query("s", turns, labels=("Yes", "No"))], (1.0,))
    (written,) = engine.generate([Query("g", turns, mode="generate", max_new_tokens=3)])

    assert scored.error is None
    assert scored.label_tokens == f"{ord('Y')} {ord('N')}"
    assert scored.inference_mode == "full_forward"
    assert written.completion_tokens is not None
    assert 0 <= written.completion_tokens <= 3


@pytest.mark.parametrize("family", CLASSES)
def test_a_shard_is_answered_without_comparing_what_cannot_be_shared(
    caches: Path, family: str, tmp_path: Path
) -> None:
    # bfloat16, where the self-check of other families computes in float32 too.
    write_snapshot(caches, family)
    draw(0).save(tmp_path / "noise.png")
    digest = hashlib.sha256((tmp_path / "noise.png").read_bytes()).hexdigest()
    image = {"image": str(tmp_path / "noise.png"), "image_sha256": digest}
    score, write = {"mode": "score", "label_set": "yes_no"}, {"mode": "generate"}
    rows: list[dict[str, Any]] = [
        {"request_id": "scored", "text": QUESTION, **score, **image},
        {"request_id": "without image", "text": QUESTION, **score},
        {"request_id": "written", "text": "Describe.", "max_new_tokens": 3, **write, **image},
    ]
    requests = pa.Table.from_pylist(
        [{"shard": 0, "sample_id": "s", **row} for row in rows], schema=REQUESTS.schema
    )

    answered = answer_shard(
        requests,
        None,
        entry(family, dtype="bfloat16"),
        {"yes_no": ("Yes", "No")},
        (1.0,),
        tmp_path / "store",
        device="cpu",
    )

    assert answered.responses["error"].to_pylist() == [None, None, None]
    assert answered.manifest["inference_modes"] == {"full_forward": 3}
    engine = answered.manifest["engine"]
    assert engine["tokens_asked"] == sum(answered.responses["prompt_tokens"].to_pylist())
    for check in engine["self_checks"]:
        assert check["errors"] == {}
        assert set(check["refused"]) == {"packed", "repeated", "image_features"}


def test_minicpm_o_is_loaded_without_its_sound(
    load: Callable[[str], tuple[LoadedProcessor, Any]],
) -> None:
    _, model = load("minicpm_o")

    assert model.parts == ["vision"]


def test_qwen_vl_never_opens_what_a_prompt_names(
    load: Callable[[str], tuple[LoadedProcessor, Any]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A file of the prompt's fixed name lies in the working folder; it must not be looked at.
    loaded, model = load("qwen_vl_v1")
    ids, processed = ours(loaded, [draw(0)] * 3)
    images = loaded.family.join_images(processed)
    before = loaded.family.next_token_logits(model, torch.tensor([ids]), images)
    draw(1).save(tmp_path / "image", format="png")
    monkeypatch.chdir(tmp_path)

    after = loaded.family.next_token_logits(model, torch.tensor([ids]), images)

    torch.testing.assert_close(before, after, rtol=0, atol=0)
    with pytest.raises(ModelError, match="Write one placeholder for each image"):
        ChatRenderer(loaded.processor, loaded.family, "qwen").render(
            (Turn("user", "Look at <vlmfair-image>"),)
        )


def test_qwen_vl_refuses_an_address_in_a_question(
    load: Callable[[str], tuple[LoadedProcessor, Any]],
) -> None:
    loaded, model = load("qwen_vl_v1")
    renderer = ChatRenderer(loaded.processor, loaded.family, "qwen")
    ids = renderer.render((Turn("user", "See <img>http://a.b</img>"),)).ids

    with pytest.raises(ModelError, match=r"name 1 images, and 0 are given\. Take <img> out of"):
        loaded.family.next_token_logits(model, torch.tensor([ids]), {})


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"revision": None}, "revision is missing. Write revision: <40-hex commit"),
        ({"path": "here", "repository": None}, "trust_remote_code needs a pinned repository"),
        ({"revision": "f" * 40}, "is not downloaded. Run: hf download owner/minicpm-v"),
    ],
)
def test_remote_code_runs_only_from_a_pinned_download(
    caches: Path, changes: dict[str, object], sentence: str
) -> None:
    write_snapshot(caches, "minicpm_v")

    with pytest.raises(ModelError) as caught:
        load_processor(entry("minicpm_v", **changes))

    assert sentence in str(caught.value)


def test_remote_code_does_not_run_without_the_entrys_word(caches: Path) -> None:
    write_snapshot(caches, "minicpm_v")

    with pytest.raises(ModelError, match=r"trust_remote_code: true"):
        load_processor(entry("minicpm_v", trust_remote_code=False))


@pytest.mark.parametrize(("family", "what"), [("minicpm_v", "model"), ("qwen_vl_v1", "tokenizer")])
def test_code_that_does_not_run_here_names_its_environment(
    caches: Path, family: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As the published MiniCPM-o imports LogitsWarper, which transformers 5 does not have.
    monkeypatch.setitem(COMMITS, family, "e" * 40)
    folder = write_snapshot(caches, family, owner=what)
    code = folder / "stand_in.py"
    lines = "from transformers import LogitsWarperOfOld\n"
    (folder / "older.py").write_text(code.read_text() + lines)
    if what == "model":
        settings = json.loads((folder / "config.json").read_text())
        settings["auto_map"]["AutoModel"] = "older.MiniCPMV"
        (folder / "config.json").write_text(json.dumps(settings))
    else:
        maps = {"AutoTokenizer": ["older.QWenTokenizer", None]}
        (folder / "tokenizer_config.json").write_text(json.dumps({"auto_map": maps}))
    repository = f"{what}/{family.replace('_', '-')}"

    with pytest.raises(ModelError) as caught:
        load_model(load_processor(entry(family, repository=repository)), "cpu")

    assert "LogitsWarperOfOld" in str(caught.value)
    assert "Run snakemake with --use-conda, or this job where requirements-legacy.lock" in str(
        caught.value
    )


def test_code_of_another_repository_is_refused(caches: Path) -> None:
    folder = write_snapshot(caches, "minicpm_v", owner="stranger")
    settings = json.loads((folder / "config.json").read_text())
    settings["auto_map"]["AutoModel"] = "someone/else--stand_in.MiniCPMV"
    (folder / "config.json").write_text(json.dumps(settings))

    with pytest.raises(ModelError, match=r"someone/else--stand_in.MiniCPMV lies in another repos"):
        load_processor(entry("minicpm_v", repository="stranger/minicpm-v"))
