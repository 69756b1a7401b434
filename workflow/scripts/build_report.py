"""Write the report page: every table and figure, what is missing, and where it comes from."""

import json
from pathlib import Path

import pandas as pd

from vlmfair.artefacts import load_artefacts
from vlmfair.logs import rule_log
from vlmfair.papers.gras.summary import provenance_of, summarise
from vlmfair.render.captions import caption_html
from vlmfair.render.report import Summary, build_report

PAPERS = {
    "lvlm_fairness": "Fairness of LVLMs across demographic attributes and prompts",
    "vl_bicle": "VL-BICLE: gender bias in vision-language in-context learning",
}

with rule_log(snakemake.log[0]):
    artefacts = load_artefacts(snakemake.input.registry)
    config = json.loads(snakemake.params.config)
    captions = {entry.caption: entry.id for entry in artefacts if entry.built}
    manifests = [json.loads(Path(path).read_text("utf-8")) for path in snakemake.input.manifests]
    build_report(
        artefacts,
        snakemake.input.files,
        snakemake.output[0],
        title=f"Fairness of vision-language models: suite {snakemake.params.suite}",
        template=snakemake.input.template,
        captions={captions[path]: caption_html(path, config) for path in snakemake.input.captions},
        summaries={
            **{paper: Summary(title) for paper, title in PAPERS.items()},
            "gras": summarise(
                pd.read_parquet(snakemake.input.metrics),
                snakemake.params.models,
                dict(snakemake.params.titles),
            ),
        },
        problems=pd.read_parquet(snakemake.input.problems),
        provenance=provenance_of(manifests),
        config=snakemake.params.config,
    )
