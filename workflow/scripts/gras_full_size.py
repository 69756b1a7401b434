"""Collect the figures of the full-size run, and write them into the documentation."""

import json
from pathlib import Path

from vlmfair.bench.document import replace_section
from vlmfair.bench.full_size import (
    bytes_below,
    collect_figures,
    figures_as_markdown,
    read_jobs,
    read_manifests,
)
from vlmfair.contracts import SAMPLES, read_table
from vlmfair.logs import rule_log
from vlmfair.provenance import write_json, write_text

with rule_log(snakemake.log[0]):
    suite = Path(snakemake.params.suite)
    figures = collect_figures(
        read_jobs(suite / "benchmarks", suite / "logs"),
        json.loads(Path(snakemake.input.speed).read_text(encoding="utf-8")),
        read_manifests(suite / "gras"),
        images=len(read_table(snakemake.input.images, SAMPLES, columns=["sample_id"])),
        answer_bytes=bytes_below(Path(snakemake.params.store)),
    )
    table = figures_as_markdown(figures)
    if snakemake.params.document:
        replace_section(Path(snakemake.params.document), "gras_full_size", table)
    write_text(snakemake.output.table, table)
    write_json(snakemake.output.figures, figures)
