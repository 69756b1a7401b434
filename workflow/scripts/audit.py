"""Recompute what the papers' own numbers imply and list what does not agree."""

from pathlib import Path

from vlmfair.audit import run_audit
from vlmfair.logs import rule_log

with rule_log(snakemake.log[0]):
    results = snakemake.params.gras_evaluation_results
    run_audit(
        Path(snakemake.input.published[0]).parent,
        gras_evaluation_results=Path(results) if results else None,
        out=Path(snakemake.output[0]),
    )
