"""Draw one figure of vl_bicle as pdf, png and csv."""

from pathlib import Path

import pandas as pd

from vlmfair.logs import rule_log
from vlmfair.papers.vl_bicle.figures import draw_figure
from vlmfair.papers.vl_bicle.study_files import study_of_run

with rule_log(snakemake.log[0]):
    study = study_of_run(snakemake.input, snakemake.params)
    draw_figure(
        snakemake.params.artefact,
        pd.read_parquet(snakemake.input.metrics),
        study,
        Path(snakemake.output[0]).with_suffix(""),
    )
