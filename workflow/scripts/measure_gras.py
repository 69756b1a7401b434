"""Measure one model's bias: every test, score, interval and null of GRAS."""

from vlmfair.contracts import METRICS, write_table
from vlmfair.logs import rule_log
from vlmfair.papers.gras.measure import measure_model
from vlmfair.papers.gras.questions import load_traits, select_traits

with rule_log(snakemake.log[0]):
    metrics = measure_model(
        snakemake.input.judgements,
        snakemake.input.images,
        select_traits(load_traits(snakemake.input.traits), snakemake.params.traits),
        model=snakemake.wildcards.model,
        alpha=snakemake.params.alpha,
        temperatures=snakemake.params.temperatures,
        permutations=snakemake.params.permutations,
        bootstraps=snakemake.params.bootstraps,
        seed=snakemake.params.seed,
    )
    write_table(snakemake.output.metrics, metrics, METRICS)
