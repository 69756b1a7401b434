"""Write the report page: every table and figure, what is missing, and where it comes from."""

import json
from pathlib import Path

import pandas as pd

from vlmfair.artefacts import load_artefacts
from vlmfair.logs import rule_log
from vlmfair.papers.gras.summary import summarise as summarise_gras
from vlmfair.papers.lvlm_fairness.summary import summarise as summarise_lvlm_fairness
from vlmfair.papers.vl_bicle.summary import summarise as summarise_vl_bicle
from vlmfair.render.captions import caption_html
from vlmfair.render.provenance import provenance_of
from vlmfair.render.report import build_report

SUMMARISE = {
    "gras": summarise_gras,
    "lvlm_fairness": summarise_lvlm_fairness,
    "vl_bicle": summarise_vl_bicle,
}
# Most of what is left out of a dataset, and no fault of it: listed after the faults.
BY_DESIGN = ("other_class", "several_persons")

with rule_log(snakemake.log[0]):
    artefacts = load_artefacts(snakemake.input.registry)
    config = json.loads(snakemake.params.config)
    captions = {entry.caption: entry.id for entry in artefacts if entry.built}
    manifests = [json.loads(Path(path).read_text("utf-8")) for path in snakemake.input.manifests]
    summaries = {}
    for paper, summarise in SUMMARISE.items():
        shown = dict(snakemake.params[paper])
        files = snakemake.input[paper]
        parts = [files] if isinstance(files, str) else files
        metrics = pd.concat(map(pd.read_parquet, parts), ignore_index=True)
        summaries[paper] = summarise(metrics, **{**shown, "titles": dict(shown["titles"])})
    problems = pd.concat(map(pd.read_parquet, snakemake.input.problems), ignore_index=True)
    problems = problems.iloc[problems["reason"].isin(BY_DESIGN).argsort(kind="stable")]
    build_report(
        artefacts,
        snakemake.input.files,
        snakemake.output[0],
        title=f"Fairness of vision-language models: suite {snakemake.params.suite}",
        template=snakemake.input.template,
        captions={captions[path]: caption_html(path, config) for path in snakemake.input.captions},
        summaries=summaries,
        problems=problems,
        provenance=provenance_of(manifests),
        config=snakemake.params.config,
    )
