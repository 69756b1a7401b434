"""`snakemake plan_cost` against what the demo really asked, and for the papers without any data."""

from __future__ import annotations

import dataclasses

import pandas as pd
import pyarrow.parquet as pq
import pytest
import yaml

pytestmark = pytest.mark.workflow

# The final prompts repeat the models' own answers to sub-questions, whose length is assumed.
WITH_ANSWERS_IN_PROMPTS = "rationale"
TOKENS_WITHIN = 0.02


def answers_of(project, paper: str, model: str) -> tuple[int, int, int]:
    """Answers of a model, tokens of their prompts, and tokens without those that repeat answers."""
    folder = project.folder / f"results/demo/{paper}/responses"
    found = []
    for path in sorted(folder.rglob(f"{model}.parquet")):
        table = pq.read_table(path, columns=["prompt_tokens"])
        found.append((path.parent.name, table["prompt_tokens"].to_pylist()))
    everything = [tokens for _, listed in found for tokens in listed]
    known = [
        tokens for name, listed in found if name != WITH_ANSWERS_IN_PROMPTS for tokens in listed
    ]
    return len(everything), sum(everything), sum(known)


def test_the_plan_of_the_demo_is_what_it_really_asked(finished):
    shown = finished.snakemake("plan_cost")

    assert "| gras" in shown
    assert "The same as a page: results/demo/plan_cost.html" in shown
    plan = pd.read_csv(finished.folder / "results/demo/plan_cost.csv")
    # Drawn images are no answers: what draws has no tokens.
    plan = plan[(plan["model"] != "all") & (plan["tokens_asked"] > 0)].set_index(["paper", "model"])
    assert set(plan.index.get_level_values("paper")) == {"gras", "lvlm_fairness", "vl_bicle"}
    for (paper, model), row in plan.iterrows():
        requests, tokens, without = answers_of(finished, paper, model)
        assert row["requests"] == requests, (paper, model)
        within = TOKENS_WITHIN if tokens == without else 0.1
        assert row["tokens_asked"] == pytest.approx(tokens, rel=within), (paper, model)
        assert row["tokens_computed"] < row["tokens_asked"]
        folder = finished.folder / f"results/demo/{paper}/responses"
        jobs = [path for path in folder.rglob(f"{model}/*.parquet") if path.stem.isdigit()]
        assert row["inference_jobs"] == len(jobs), (paper, model)


def test_the_papers_are_planned_without_data_weights_or_gpus(fresh):
    paper = yaml.safe_load((fresh.folder / "config/paper.yaml").read_text())
    suite = dataclasses.replace(fresh, settings=paper)

    shown = suite.snakemake("plan_cost")

    assert "the paper states about 750 hours on one A100 for its 5 models" in shown
    plan = pd.read_csv(fresh.folder / "results/paper/plan_cost.csv").set_index(["paper", "model"])
    assert plan.loc[("gras", "all"), "requests"] == 5 * 500 * 5010
    assert plan.loc[("gras", "llava-1.5-7b"), "inference_jobs"] == 10
    assert plan.loc[("lvlm_fairness", "gpt-4o"), "api_cost"] > 0
    assert not (fresh.folder / "results/paper/samples").exists()
