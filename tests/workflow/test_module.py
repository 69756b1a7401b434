"""Other workflows, and catalogues of workflows, find and use this one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import yaml

pytestmark = pytest.mark.workflow

# An empty workflow that wants one table of GRAS, and says only what differs from the demo.
IMPORTER = """
module fairness:
    snakefile:
        "{root}/{snakefile}"
    config:
        {config}


use rule * from fairness as fairness_*


rule bias:
    default_target: True
    input:
        "results/demo/gras/tables/table_2.csv",
    output:
        "bias.csv",
    shell:
        "cp {{input}} {{output}}"
"""
ONLY_GRAS = {
    "gras": {
        "models": ["tiny-planted"],
        "per_cell": 1,
        "per_tone": 3,
        "traits": ["bad", "polite"],
        "permutations": 20,
        "bootstraps": 20,
    }
}


def write_importer(folder: Path, root: Path, snakefile: str = "Snakefile") -> None:
    text = IMPORTER.format(root=root, snakefile=snakefile, config=ONLY_GRAS)
    (folder / "Snakefile").write_text(text)


def snakemake(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", "--cores", "2", *arguments],
        cwd=folder,
        env={**os.environ, "OMP_WAIT_POLICY": "PASSIVE"},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    return done.stdout + done.stderr


def job_counts(shown: str) -> dict[str, str]:
    return dict(re.findall(r"^(\w+) +(\d+)$", shown, flags=re.MULTILINE))


@pytest.mark.slow
def test_an_empty_workflow_in_another_folder_measures_gras_as_its_own_step(root, tmp_path):
    write_importer(tmp_path, root)

    snakemake(tmp_path)

    table = pd.read_csv(tmp_path / "bias.csv")
    assert table[["model", "traits"]].values.tolist() == [["tiny-planted", 2]]
    # Results, answers and logs are the importer's; the clone gets none, and no copy of its files.
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != ".snakemake") == [
        "Snakefile",
        "bias.csv",
        "results",
    ]
    assert list((tmp_path / "results/answers").glob("*/*.parquet"))


@pytest.mark.parametrize("snakefile", ["Snakefile", "workflow/Snakefile"])
def test_nothing_but_what_the_table_needs_is_planned(root, tmp_path, snakefile):
    write_importer(tmp_path, root, snakefile)

    planned = job_counts(snakemake(tmp_path, "--dry-run"))

    assert planned.pop("total") == str(sum(map(int, planned.values())))
    assert {name.removeprefix("fairness_") for name in planned} == {
        "bias",
        "draw_raw",
        "draw_selection",
        "prepare_dataset",
        "select_gras_images",
        "plan_gras",
        "infer",
        "gather_responses",
        "judge_gras",
        "measure_gras",
        "collect_metrics",
        "tabulate_gras_table_2",
    }


def test_the_snakefile_that_catalogues_look_for_plans_everything(fresh):
    planned = job_counts(fresh.snakemake("--dry-run", "--snakefile", "workflow/Snakefile"))

    assert {"all", "build_report", "infer", "infer_experiment"} <= set(planned)


def test_what_catalogues_ask_for_is_there(root):
    usage = yaml.safe_load((root / ".snakemake-workflow-catalog.yml").read_text())["usage"]
    readme = (root / "README.md").read_text().lower()

    assert usage["software-stack-deployment"]["conda"] is True
    assert {"mandatory-flags", "report"} <= set(usage)
    assert (root / "config/README.md").read_text().startswith("# Configuration")
    assert "snakemake" in readme
    assert "workflow" in readme


def test_rules_name_the_projects_own_files_by_a_variable(root):
    """A path that starts with resources/ would be looked for in the importing workflow's folder."""
    for rules in sorted((root / "workflow/rules").glob("*.smk")):
        bare = [
            line.strip()
            for line in rules.read_text().splitlines()
            if re.search(r'"(resources|config)/\S', line)
            and not re.search(r"own_path\(|ROOT / |startswith\(", line)
        ]
        assert bare == [], f"{rules.name}: write <resources>/... or own_path(...)"
