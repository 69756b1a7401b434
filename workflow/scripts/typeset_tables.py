"""Typeset all tables of a paper into one PDF."""

from pathlib import Path

from vlmfair.logs import rule_log
from vlmfair.render.document import write_tables_pdf

with rule_log(snakemake.log[0]):
    write_tables_pdf(map(Path, snakemake.input), snakemake.params.title, Path(snakemake.output[0]))
