"""The sheet of models: what it states, what it refuses, and how a model's content is recognised."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml
from tiny_llava import tiny_entry

from vlmfair.errors import ConfigError, ModelError
from vlmfair.models.registry import load_registry, make_entry, model_digest, model_folder

COMMIT = "0123456789abcdef0123456789abcdef01234567"
# Table 5 of the GRAS paper (token ids) and the released scripts (number formats).
GRAS_MODELS = {
    "blip2-opt-2.7b": ("blip2", "float16", " Yes", 3216),
    "llava-1.5-7b": ("llava", "float16", " Yes", 3869),
    "paligemma2-3b-mix-224": ("paligemma", "bfloat16", "Yes", 3553),
    "qwen2.5-vl-3b": ("qwen2_5_vl", "bfloat16", "Yes", 9454),
    "phi-4-multimodal": ("phi4_multimodal", "float16", "Yes", 13022),
}


def write_sheet(folder: Path, **settings: object) -> Path:
    entry = {"path": "weights", "family": "llava", "dtype": "float32", "attention": "sdpa"}
    entry.update({key: value for key, value in settings.items() if value is not None})
    for key in [key for key, value in settings.items() if value is None]:
        entry.pop(key, None)
    path = folder / "models.yaml"
    path.write_text(yaml.safe_dump({"models": {"mine": entry}}))
    return path


def test_the_committed_sheet_states_the_papers_models(root: Path) -> None:
    registry = load_registry(
        root / "config/models.yaml", root / "config/schemas/models.schema.json"
    )

    found = {
        name: (entry.family, entry.dtype, entry.yes_form, entry.yes_id)
        for name, entry in registry.items()
        if entry.repository
    }

    assert {name: found[name] for name in GRAS_MODELS} == GRAS_MODELS
    assert registry["tiny-planted"].path == "resources/demo/tiny-planted"
    assert registry["qwen2.5-vl-3b"].image_transforms["ai_face"] == "resize:252x252"


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"familly": "llava"}, "familly is not a known key. Write family."),
        ({"family": None}, "family is missing. Write family: <name of a module"),
        ({"path": None}, "repository is missing. Write repository: <owner/name"),
        ({"path": None, "repository": "a/b", "revision": "main"}, "'main' does not match"),
        (
            {"path": None, "repository": "a/b", "trust_remote_code": True},
            "revision is missing. Write revision: <40-hex commit of the model repository>.",
        ),
        ({"repository": "a/b"}, "Keep one of them."),
        ({"dtype": "fp16"}, "Write float32, bfloat16 or float16."),
        ({"image_transforms": {"ai_face": "resize"}}, "Write none or resize:WIDTHxHEIGHT."),
    ],
)
def test_a_wrong_entry_is_refused_with_what_to_write(
    root: Path, tmp_path: Path, settings: dict[str, object], sentence: str
) -> None:
    sheet = write_sheet(tmp_path, **settings)

    with pytest.raises(ConfigError) as caught:
        load_registry(sheet, root / "config/schemas/models.schema.json")

    assert sentence in str(caught.value)
    assert "mine" in str(caught.value)


def test_a_missing_folder_names_the_key_to_correct() -> None:
    with pytest.raises(ModelError, match=r"nowhere is missing\. Put .* correct path"):
        model_folder(tiny_entry(Path("nowhere")))


def test_a_repository_needs_a_commit_and_a_download(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    settings = {"repository": "owner/name", "family": "llava", "dtype": "float32"}
    unpinned = make_entry("mine", {**settings, "attention": "sdpa"})
    pinned = make_entry("mine", {**settings, "attention": "sdpa", "revision": COMMIT})

    with pytest.raises(ModelError, match=r"revision is missing. Write revision: <40-hex commit"):
        model_folder(unpinned)
    with pytest.raises(ModelError, match=f"Run: hf download owner/name --revision {COMMIT}"):
        model_folder(pinned)


def test_remote_code_of_an_unpinned_folder_is_refused(model_folder: Path) -> None:
    from vlmfair.models.registry import model_folder as find_folder

    with pytest.raises(ModelError, match=r"trust_remote_code needs a pinned repository"):
        find_folder(tiny_entry(model_folder, trust_remote_code=True))


@pytest.mark.parametrize("changed", ["model.safetensors", "tokenizer.json", "chat_template.jinja"])
def test_the_digest_follows_content_and_not_the_place(
    model_folder: Path, tmp_path: Path, changed: str
) -> None:
    copy = tmp_path / "elsewhere"
    shutil.copytree(model_folder, copy)
    before = model_digest(tiny_entry(copy))

    assert before == model_digest(tiny_entry(model_folder))

    (copy / changed).write_bytes((copy / changed).read_bytes() + b" ")

    assert model_digest(tiny_entry(copy)) != before


def test_pickled_weights_are_not_counted_as_weights(model_folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "pickled"
    shutil.copytree(model_folder, copy)
    (copy / "model.safetensors").rename(copy / "pytorch_model.bin")

    with pytest.raises(ModelError, match=r"no weights in the safetensors format\. Download"):
        model_digest(tiny_entry(copy))
