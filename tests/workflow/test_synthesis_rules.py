"""What the rules that draw images say before anything is drawn."""

from __future__ import annotations

from typing import Any

TARGET = "results/demo/vl_bicle/synthesis/{}/images.parquet"
SETTINGS: dict[str, Any] = {
    "path": "models/nowhere",
    "pipeline": "FluxPipeline",
    "steps": 2,
    "guidance": 3.5,
    "height": 32,
    "width": 32,
    "dtype": "float32",
}


def with_generators(project: Any, **generators: Any) -> Any:
    return project.with_settings(vl_bicle={"synthesis": {"generators": generators}})


def test_a_generator_that_is_not_there_stops_the_run_before_its_first_job(fresh: Any) -> None:
    project = with_generators(fresh, flux=SETTINGS, sd35l=None)

    planned = project.snakemake(TARGET.format("flux"), "--dry-run")
    stopped = project.snakemake(TARGET.format("flux"), check=False)

    says = "1 of 1 cannot draw yet: flux (no model_index.json in models/nowhere)"
    assert f"{says}. Put the pipeline's folder there" in planned
    assert says in stopped
    assert not (fresh.folder / "results").exists() or not list(
        (fresh.folder / "results").rglob("*.parquet")
    )


def test_what_an_overriding_config_leaves_out_is_not_drawn(fresh: Any) -> None:
    project = with_generators(fresh, flux=None, sd35l=None)

    planned = project.planned_rules("results/demo/vl_bicle/metrics.parquet")

    assert "plan_vl_bicle" in planned
    assert planned & {"plan_synthesis", "synthesize", "measure_synthesis"} == set()
