"""Recompute what the papers' own numbers imply and list what does not agree."""

from pathlib import Path

from vlmfair.audit.rows import write_audit
from vlmfair.logs import rule_log
from vlmfair.papers.gras.audit import audit as audit_gras
from vlmfair.papers.lvlm_fairness.audit import audit as audit_lvlm_fairness

with rule_log(snakemake.log[0]):
    results = snakemake.params.gras_evaluation_results
    rows = [
        *audit_gras(
            Path(snakemake.input.gras),
            Path(snakemake.input.gras_significance),
            Path(results) if results else None,
        ),
        *audit_lvlm_fairness(Path(snakemake.input.lvlm_fairness)),
    ]
    write_audit(rows, Path(snakemake.output[0]))
