"""Regenerates every table and figure of three papers on the fairness of vision-language models."""

from snakemake.utils import min_version

min_version("9.27")


include: "workflow/rules/common_places.smk"


configfile: own_path("config/config.yaml")


if config.get("gras_selection"):

    configfile: own_path("config/full_size.yaml")


include: "workflow/rules/common.smk"
include: "workflow/rules/common_lvlm_fairness.smk"
include: "workflow/rules/common_synthesis.smk"
include: "workflow/rules/common_vl_bicle.smk"
include: "workflow/rules/common_retrieve.smk"
include: "workflow/rules/common_check.smk"
include: "workflow/rules/common_models.smk"
include: "workflow/rules/common_cost.smk"


pathvars:
    suite=SUITE_FOLDER,
    logs=f"{SUITE_FOLDER}/logs",
    benchmarks=f"{SUITE_FOLDER}/benchmarks",
    resources=own_path("resources"),


report: "workflow/report/workflow.rst"


include: "workflow/rules/retrieve.smk"
include: "workflow/rules/prepare.smk"
include: "workflow/rules/check.smk"
include: "workflow/rules/models.smk"
include: "workflow/rules/cost.smk"
include: "workflow/rules/embed.smk"
include: "workflow/rules/plan.smk"
include: "workflow/rules/infer.smk"
include: "workflow/rules/judge.smk"
include: "workflow/rules/measure.smk"
include: "workflow/rules/synthesize.smk"
include: "workflow/rules/render.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/typeset.smk"
include: "workflow/rules/audit.smk"
include: "workflow/rules/bench.smk"
include: "workflow/rules/train.smk"


wildcard_constraints:
    paper="|".join(PAPERS),
    experiment="[a-z_]+",
    dataset="[a-z_]+",
    model="[A-Za-z0-9.-]+",
    shard="[0-9]+",
    generator="[a-z][a-z0-9_]*",
    page="[0-9]+",


rule all:
    default_target: True
    input:
        artefact_files("gras"),
        artefact_files("lvlm_fairness"),
        artefact_files("vl_bicle"),
        "<suite>/report/index.html",


rule gras:
    input:
        artefact_files("gras"),


rule lvlm_fairness:
    input:
        artefact_files("lvlm_fairness"),


rule vl_bicle:
    input:
        artefact_files("vl_bicle"),
