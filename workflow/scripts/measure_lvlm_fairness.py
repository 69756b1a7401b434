"""Measure one model on FACET and UTKFace: recall, disparities, and what rationales change."""

from pathlib import Path

from vlmfair.contracts import JUDGEMENTS, METRICS, SAMPLES, read_table, write_table
from vlmfair.logs import rule_log
from vlmfair.papers.lvlm_fairness.measure import measure_model

with rule_log(snakemake.log[0]):
    # .../judgements/<experiment>/<model>/<judge>.parquet
    places = [Path(path) for path in snakemake.input.judgements]
    metrics = measure_model(
        {(path.parts[-3], path.stem): read_table(path, JUDGEMENTS) for path in places},
        {name: read_table(snakemake.input[name], SAMPLES) for name in ("facet", "utkface")},
        model=snakemake.wildcards.model,
        rationale_prompt=snakemake.params.rationale_prompt,
        resample_sizes=snakemake.params.resample_sizes,
        resample_draws=snakemake.params.resample_draws,
        bootstraps=snakemake.params.bootstraps,
        seed=snakemake.params.seed,
        small_cell=snakemake.params.small_cell,
    )
    write_table(snakemake.output.metrics, metrics, METRICS)
