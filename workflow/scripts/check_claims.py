"""Test each finding of the paper on what was measured."""

import pandas as pd

from vlmfair.contracts import METRICS, write_table
from vlmfair.logs import rule_log
from vlmfair.papers.vl_bicle.claims import check_claims, claim_metrics, claim_table, load_claims
from vlmfair.provenance import write_text

with rule_log(snakemake.log[0]):
    results = check_claims(
        load_claims(snakemake.input.claims),
        pd.read_parquet(snakemake.input.metrics),
        titles=dict(snakemake.params.titles),
        models=snakemake.params.models,
    )
    write_text(snakemake.output.table, claim_table(results).to_csv(index=False))
    write_table(snakemake.output.metrics, claim_metrics(results), METRICS)
