"""Measure the engine against the plain form, and write the figures."""

from pathlib import Path

from vlmfair.bench.engine import run
from vlmfair.bench.machine import describe_machine
from vlmfair.logs import rule_log
from vlmfair.provenance import write_json

with rule_log(snakemake.log[0]):
    figures = run(Path(snakemake.input.tokens).parents[1])
    write_json(snakemake.output[0], {**figures, "machine": describe_machine()})
