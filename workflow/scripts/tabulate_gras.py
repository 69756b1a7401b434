"""Write one table of GRAS as csv, tex and html."""

from pathlib import Path

import pandas as pd

from vlmfair.logs import rule_log
from vlmfair.models.registry import load_registry
from vlmfair.papers.gras.study_files import load_study
from vlmfair.papers.gras.tables import write_table

with rule_log(snakemake.log[0]):
    study = load_study(
        entries=load_registry(snakemake.params.models_file),
        models=snakemake.params.models,
        traits_file=snakemake.input.traits,
        chosen_traits=snakemake.params.chosen_traits,
        prompts_file=snakemake.input.prompts,
        style=snakemake.params.style,
        alpha=snakemake.params.alpha,
        selection=snakemake.input.selection,
        images=snakemake.input.images,
        manifests=snakemake.input.manifests,
    )
    write_table(
        snakemake.params.artefact,
        pd.read_parquet(snakemake.input.metrics),
        study,
        Path(snakemake.output[0]).with_suffix(""),
        title=snakemake.params.title,
    )
