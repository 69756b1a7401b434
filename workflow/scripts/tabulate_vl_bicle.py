"""Write one table of vl_bicle as csv, tex and html; those of the appendix are of one model."""

from pathlib import Path

import pandas as pd

from vlmfair.logs import rule_log
from vlmfair.papers.vl_bicle.study_files import study_of_run
from vlmfair.papers.vl_bicle.tables import write_table

with rule_log(snakemake.log[0]):
    study = study_of_run(snakemake.input, snakemake.params)
    write_table(
        snakemake.params.artefact,
        pd.read_parquet(snakemake.input.metrics),
        study,
        Path(snakemake.output[0]).with_suffix(""),
        title=snakemake.params.title,
        model=snakemake.wildcards.get("model"),
    )
