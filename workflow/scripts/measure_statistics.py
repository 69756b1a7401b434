"""Measure the statistics against the libraries' plain loops, and write the figures."""

from vlmfair.bench.gras_stats import run
from vlmfair.logs import rule_log
from vlmfair.provenance import write_json

with rule_log(snakemake.log[0]):
    write_json(snakemake.output[0], run())
