"""Plan the questions of one experiment of lvlm_fairness to one model."""

import json
from pathlib import Path

from vlmfair.contracts import REQUESTS, SAMPLES, read_table, write_table
from vlmfair.inference.sharding import shard_count
from vlmfair.logs import rule_log
from vlmfair.models.registry import load_registry
from vlmfair.papers.lvlm_fairness.plan import evaluated_people, plan_facet, plan_utkface
from vlmfair.papers.lvlm_fairness.questions import load_classes, load_prompts
from vlmfair.papers.lvlm_fairness.rationale import plan_sub_questions

with rule_log(snakemake.log[0]):
    params, experiment = snakemake.params, snakemake.wildcards.experiment
    prompts = load_prompts(snakemake.input.prompts, load_classes(snakemake.input.classes))
    entry = load_registry(params.models_file)[snakemake.wildcards.model]
    samples = read_table(snakemake.input.samples, SAMPLES)
    images = len(samples) if experiment == "utkface" else len(evaluated_people(samples))
    settings = {
        "style": params.style,
        # Spread evenly, so that no job has the rest of what was announced.
        "images_per_shard": max(1, shard_count(images, params.shards)),
        "max_new_tokens": params.max_new_tokens,
    }
    if experiment == "sub_questions":
        asked = json.loads(Path(snakemake.input.sub_questions[0]).read_text(encoding="utf-8"))
        requests = plan_sub_questions(samples, prompts, entry, asked, **settings)
    else:
        plan = plan_facet if experiment == "facet" else plan_utkface
        requests = plan(samples, prompts, entry, prompt_ids=params.prompts, **settings)
    manifest = {"prompts": prompts.digest(), "prompt_style": params.style}
    write_table(snakemake.output.requests, requests, REQUESTS, manifest=manifest)
