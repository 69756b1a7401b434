"""Gather the figures of the bench, write them into the documentation, and check their bars."""

import json
from pathlib import Path

from vlmfair.bench.bars import as_markdown, check_bars
from vlmfair.bench.document import replace_section
from vlmfair.logs import rule_log
from vlmfair.provenance import write_json, write_text

with rule_log(snakemake.log[0]):
    figures = {}
    for measured in (snakemake.input.engine, snakemake.input.statistics):
        figures |= json.loads(Path(measured).read_text(encoding="utf-8"))
    table = as_markdown(figures, figures["machine"])
    replace_section(Path(snakemake.params.document), "bench", table)
    write_text(snakemake.output.table, table)
    write_json(snakemake.output.figures, figures)
    check_bars(figures)
