"""Count the images of each group of FACET and UTKFace."""

from vlmfair.contracts import METRICS, SAMPLES, read_table, write_table
from vlmfair.logs import rule_log
from vlmfair.papers.lvlm_fairness.measure_data import measure_data

with rule_log(snakemake.log[0]):
    samples = {name: read_table(path, SAMPLES) for name, path in snakemake.input.items()}
    write_table(snakemake.output.metrics, measure_data(samples), METRICS)
