"""Write one table of lvlm_fairness as csv, tex and html."""

from pathlib import Path

import pandas as pd

from vlmfair.logs import rule_log
from vlmfair.papers.lvlm_fairness.study_files import study_of_run
from vlmfair.papers.lvlm_fairness.tables import write_table

with rule_log(snakemake.log[0]):
    study = study_of_run(snakemake.input, snakemake.params)
    write_table(
        snakemake.params.artefact,
        pd.read_parquet(snakemake.input.metrics),
        study,
        Path(snakemake.output[0]).with_suffix(""),
        title=snakemake.params.title,
    )
