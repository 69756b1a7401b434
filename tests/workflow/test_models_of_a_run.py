"""`snakemake fetch_models` downloads and locks; `snakemake check` tells what is still missing."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from fake_hub import COMMIT, Repository, fake_hub

pytestmark = pytest.mark.workflow

MINE = {
    "repository": "owner/name",
    "family": "llava",
    "dtype": "float32",
    "attention": "sdpa",
    "memory_gb": 1.5,
}


def use_hub_model(project) -> None:
    """Let the config ask a model of the hub, and let the sheet describe it."""
    sheet = project.folder / "config/models.yaml"
    content = yaml.safe_load(sheet.read_text())
    content["models"]["hub-model"] = MINE
    (project.folder / "config/my_models.yaml").write_text(yaml.safe_dump(content))


def test_a_model_is_fetched_locked_and_known_from_then_on(
    fresh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_hub_model(fresh)
    project = fresh.with_settings(
        models_file="config/my_models.yaml", gras={"models": ["tiny-control", "hub-model"]}
    )
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    warned = project.snakemake("--dry-run", "gras")
    assert "hub-model (no revision)" in warned

    with fake_hub({"owner/name": Repository({COMMIT: {"model.safetensors": b"w"}})}) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        project.snakemake("fetch_models")

    lock = yaml.safe_load((project.folder / "config/my_models.lock.yaml").read_text())
    assert lock["models"]["hub-model"]["revision"] == COMMIT
    assert "no revision" not in project.snakemake("--dry-run", "gras")

    (weights,) = (tmp_path / "hub").rglob("snapshots/*/model.safetensors")
    weights.resolve().write_bytes(b"other")
    shown = project.snakemake("fetch_models", check=False)
    assert "is not what config/my_models.lock.yaml has locked: model.safetensors differs" in shown
    assert "Traceback" not in shown


def test_the_check_lists_models_and_fails_where_one_is_missing(
    finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_hub_model(finished)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    assert "| tiny-control" in finished.snakemake("check")

    with_hub = finished.with_settings(
        models_file="config/my_models.yaml", gras={"models": ["tiny-control", "hub-model"]}
    )
    shown = with_hub.snakemake("check", check=False)

    assert "| hub-model    | vlm  | no         |             | about 1.5 GB |" in shown
    assert "the models are not complete; missing: hub-model." in shown
    assert "Traceback" not in shown
