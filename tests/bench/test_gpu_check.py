"""The check for a GPU runs its whole road on a CPU, notices faults, and computes hours."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import gpu_check
import pytest
import torch

from vlmfair.bench.document import replace_section
from vlmfair.bench.gpu import BATCHES, OURS, PLAIN, as_markdown, hours, is_exact
from vlmfair.bench.random_models import REAL, build_model, llava_config, qwen_config

MODELS = ("llava", "qwen")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the command writes of tiny models."""
    path = tmp_path_factory.mktemp("check") / "gpu.json"
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        assert gpu_check.main(["--tiny", "--out", str(path)]) == 0
    finally:
        torch.set_num_threads(threads)
    return dict(json.loads(path.read_text()))


@pytest.mark.parametrize("name", MODELS)
def test_both_models_go_the_whole_road(report: dict[str, Any], name: str) -> None:
    figures = report[name]

    assert figures["bfloat16"]["mode"] == figures["float32"]["mode"] == "packed"
    # Float32 rounding is about 1e-6; without the mask packed prompts see each other's tokens.
    assert figures["float32"]["errors"]["packed"] < 1e-5
    assert figures["without_mask"]["mode"] != "packed"
    assert is_exact(figures)
    for way in (PLAIN, BATCHES, OURS):
        assert figures[way]["per_second"] > 0
        assert figures[way]["peak_bytes"] > 0


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("bfloat16", {"mode": "repeated"}),
        ("float32", {"mode": "full_forward"}),
        # A fault of the size that is allowed says nothing about the others.
        ("without_mask", {"errors": {"packed": 1e-4}}),
        ("without_mask", {"errors": {}}),
    ],
)
def test_what_is_not_exact_or_would_not_be_noticed_fails(
    report: dict[str, Any], name: str, changes: dict[str, Any]
) -> None:
    figures = report["llava"]

    assert not is_exact({**figures, name: {**figures[name], **changes}})


def test_hours_follow_from_the_rates() -> None:
    gras = {PLAIN: {"per_second": 10.0}, OURS: {"per_second": 500.0}}
    captions = {PLAIN: {"per_second": 1.0}, OURS: {"per_second": 10.0}}

    rows = hours(gras, captions)

    found = {row["part"]: (row["answers"], row["plain"], row["ours"]) for row in rows}
    expected = {
        # 2,505,000 questions at 10 and at 500 in a second.
        "GRAS: all images and questions": (2_505_000, 69.5833, 1.3917),
        # 81 answers to each of 414 images: 4 settings x 5 runs x 4 numbers of shots, once none.
        "VL-BICLE, VisoGender: OO (138) and OP (276)": (33_534, 9.315, 0.9315),
        "VL-BICLE, DCI: 80 % of 371 images": (23_976, 6.66, 0.666),
        # 16 of 97 have retrieved demonstrations of their own, and take a second in both ways.
        "VL-BICLE, COCOBias: each 1,000 images": (97_000, 26.9444, 2.25 + 4.4444),
    }
    assert found.keys() == expected.keys()
    for part, numbers in expected.items():
        assert found[part] == pytest.approx(numbers, rel=1e-4)


@pytest.mark.parametrize(
    ("config", "parameters"),
    # What the checkpoints' safetensors hold: 7,063,427,072 and 8,767,123,696 numbers.
    [(llava_config(REAL), 7.063e9), (qwen_config(REAL), 8.767e9)],
    ids=MODELS,
)
def test_models_of_real_size_are_made_on_the_device_alone(config: Any, parameters: float) -> None:
    model = build_model(config, "meta")

    weights = list(model.parameters())
    assert {weight.device.type for weight in weights} == {"meta"}
    assert {weight.dtype for weight in weights} == {torch.bfloat16}
    assert sum(weight.numel() for weight in weights) == pytest.approx(parameters, rel=1e-3)


def test_the_document_takes_the_section(report: dict[str, Any], root: Path, tmp_path: Path) -> None:
    copy = tmp_path / "performance.md"
    shutil.copy(root / "docs/performance.md", copy)

    replace_section(copy, gpu_check.SECTION, as_markdown(report))

    text = copy.read_text()
    assert f"Measured on {report['date']} on {report['card']}, with " in text
    assert "| exact | yes | yes |" in text
    assert "| GRAS: all images and questions | 2,505,000 |" in text


def test_without_a_gpu_it_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)

    with pytest.raises(SystemExit):
        gpu_check.main([])

    assert "there is no CUDA device here. Use a machine that has one" in capsys.readouterr().err
