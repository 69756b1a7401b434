"""A model that is laid over several devices answers as the same model on one."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tiny_llava import tiny_entry

from vlmfair.errors import ModelError
from vlmfair.models.loading import SPLIT, input_device, load_model, load_processor
from vlmfair.models.registry import make_entry


def last_logits(model: torch.nn.Module) -> torch.Tensor:
    ids = torch.arange(5, 25)[None].to(input_device(model))
    with torch.inference_mode():
        return model(input_ids=ids, use_cache=False).logits[0, -1].cpu()


def test_a_split_model_gives_the_same_logits(model_folder: Path) -> None:
    loaded = load_processor(tiny_entry(model_folder))

    split = load_model(loaded, SPLIT, max_memory={"cpu": "1GiB"})

    assert not split.training
    whole = load_model(loaded, "cpu")
    torch.testing.assert_close(last_logits(split), last_logits(whole), rtol=0, atol=1e-6)


def test_a_model_too_large_for_its_devices_is_not_put_on_disk(model_folder: Path) -> None:
    loaded = load_processor(tiny_entry(model_folder, name="large", sheet="my/models.yaml"))

    with pytest.raises(ModelError) as caught:
        load_model(loaded, SPLIT, max_memory={"cpu": "50KB"})

    assert str(caught.value).startswith("large: the model does not fit on the ")
    assert "or more for it in my/models.yaml." in str(caught.value)


def test_without_a_gpu_nothing_can_be_split(
    model_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Main memory is no device to split over unless it is asked for."""
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)

    with pytest.raises(ModelError, match=r"does not fit on the 0 visible GPUs.*gpus: 1 or more"):
        load_model(load_processor(tiny_entry(model_folder)), SPLIT)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="there are not two GPUs to split over")
def test_layers_lie_on_two_gpus(model_folder: Path) -> None:
    loaded = load_processor(tiny_entry(model_folder))

    split = load_model(loaded, SPLIT, max_memory={0: "100KB", 1: "1GiB"})

    assert set(split.hf_device_map.values()) == {0, 1}
    whole = load_model(loaded, "cpu")
    torch.testing.assert_close(last_logits(split), last_logits(whole), rtol=0, atol=1e-4)


def test_an_entry_may_say_how_many_gpus_it_needs() -> None:
    settings = {"family": "llava", "dtype": "bfloat16", "attention": "sdpa", "path": "models/a"}

    assert make_entry("a", {**settings, "gpus": 4}).gpus == 4
    assert make_entry("a", settings).gpus == 1
