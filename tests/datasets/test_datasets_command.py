"""`python -m vlmfair.datasets` writes both tables or says in one sentence why it cannot."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from vlmfair.contracts import PROBLEMS, SAMPLES, read_table
from vlmfair.datasets import DATASETS, parse_dataset
from vlmfair.datasets.__main__ import main
from vlmfair.datasets.base import REASONS, ProblemLog
from vlmfair.demo.raw_data import draw_raw
from vlmfair.errors import ConfigError


def test_writes_samples_problems_and_their_manifests(
    fairface_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (fairface_dir / "val/1.jpg").write_bytes(b"")
    out = tmp_path / "out"
    assert main(["fairface", str(fairface_dir), str(out)]) == 0
    assert len(read_table(out / "samples.parquet", SAMPLES)) == 2
    problems = read_table(out / "problems.parquet", PROBLEMS)
    assert problems["reason"].to_pylist() == ["image_empty"]
    assert json.loads((out / "samples.manifest.json").read_text())["rows"] == 2
    assert capsys.readouterr().out == f"{out}: 2 samples, 1 problems\n  image_empty: 1\n"


def test_only_takes_a_selection_list(fairface_dir: Path, tmp_path: Path) -> None:
    listed = tmp_path / "list.csv"
    listed.write_text("file,age\nFairFace/val/1.jpg,3-9\n")
    assert main(["fairface", str(fairface_dir), str(tmp_path / "o"), "--only", str(listed)]) == 0
    samples = read_table(tmp_path / "o/samples.parquet", SAMPLES)
    assert samples["sample_id"].to_pylist() == ["fairface/val/1.jpg"]


def test_a_dataset_with_filters_gets_its_funnel(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """VisoGender's split by another seed has other images in it, and as many."""
    draw_raw(tmp_path / "raw", "visogender", per_cell=3)
    pools = []
    for seed in ("0", "1"):
        out = tmp_path / seed
        assert main(["visogender", str(tmp_path / "raw"), str(out), "--seed", seed]) == 0
        samples = read_table(out / "samples.parquet", SAMPLES).to_pylist()
        pools.append({row["sample_id"] for row in samples if row["split"] == "pool"})
        assert "visogender,pool,,0,276,138,138" in (out / "funnel.csv").read_text().replace('"', "")
        assert json.loads((out / "samples.manifest.json").read_text())["seed"] == seed
    assert pools[0] != pools[1]
    assert main(["visogender", str(tmp_path / "raw"), str(out), "--crowd", "counts"]) == 1
    assert "the dataset has no option crowd. Use version, seed." in capsys.readouterr().err


@pytest.mark.parametrize("broken", ["raw", "column", "list"])
def test_a_fault_is_one_sentence_and_writes_nothing(
    fairface_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], broken: str
) -> None:
    arguments = ["fairface", str(fairface_dir), str(tmp_path / "out")]
    if broken == "raw":
        arguments[1] = str(tmp_path / "nowhere")
    elif broken == "column":
        (fairface_dir / "fairface_label_val.csv").write_text("file,age\nval/1.jpg,3-9\n")
    else:
        arguments += ["--only", str(tmp_path / "no.csv")]
    assert main(arguments) == 1
    message = capsys.readouterr().err
    assert message.startswith("vlmfair.datasets: ")
    assert message.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_module_runs_by_name_without_a_traceback(root: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "vlmfair.datasets", "ai_face", str(tmp_path / "no"), "out"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "the raw folder of AI-Face does not exist" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (root / "out").exists()


def test_unknown_dataset_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"celeba: no such dataset\. Write one of ai_face, coco_bias"
    ):
        parse_dataset("celeba", tmp_path)


def test_a_reason_outside_the_closed_list_is_refused() -> None:
    with pytest.raises(KeyError):
        ProblemLog("fairface").add("fairface/train/1.jpg", "did_not_like_it")


def test_documentation_lists_every_reason_and_every_dataset(root: Path) -> None:
    text = (root / "docs/datasets.md").read_text()
    assert [reason for reason in REASONS if f"| `{reason}` |" not in text] == []
    assert [name for name in DATASETS if f"`{name}`" not in text] == []
