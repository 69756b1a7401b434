"""Each model runs in the environment of its family."""

from __future__ import annotations

import os

import pytest
import yaml

pytestmark = pytest.mark.workflow

# Answers what snakemake asks conda for in a dry-run.
CONDA = """#!/bin/sh
case "$*" in
  *--version*) echo "conda 25.1.0" ;;
  *info*) echo '{"conda_version": "25.1.0", "conda_prefix": "/", "platform": "linux-64"}' ;;
  *) echo '{"get": {"channel_priority": "strict"}, "warnings": []}' ;;
esac
"""


def test_models_that_bring_their_own_code_run_in_the_older_environment(
    fresh, tmp_path, monkeypatch
):
    path = fresh.folder / "config/models.yaml"
    sheet = yaml.safe_load(path.read_text())
    sheet["models"]["remote"] = {
        "repository": "openbmb/MiniCPM-V-2_6",
        "revision": "0" * 40,
        "trust_remote_code": True,
        "family": "minicpm_v",
        "dtype": "bfloat16",
        "attention": "eager",
        "yes_form": "Yes",
    }
    path.write_text(yaml.safe_dump(sheet))
    conda = tmp_path / "bin/conda"
    conda.parent.mkdir()
    conda.write_text(CONDA)
    conda.chmod(0o755)
    monkeypatch.setenv("PATH", f"{conda.parent}{os.pathsep}{os.environ['PATH']}")
    project = fresh.with_settings(gras={"models": ["tiny-control", "remote"]})

    target = "results/demo/gras/responses/remote/0.parquet"
    shown = project.snakemake("--dry-run", "--use-conda", target)

    assert "envs/inference-legacy.yaml" in shown
    assert "envs/inference.yaml" not in shown
