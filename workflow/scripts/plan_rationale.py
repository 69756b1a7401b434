"""Plan the final question about each image, with a model's answers to the sub-questions."""

import json
from pathlib import Path

from vlmfair.contracts import REQUESTS, RESPONSES, SAMPLES, read_table, write_table
from vlmfair.inference.sharding import shard_count
from vlmfair.logs import rule_log
from vlmfair.models.registry import load_registry
from vlmfair.papers.lvlm_fairness.plan import evaluated_people
from vlmfair.papers.lvlm_fairness.questions import load_classes, load_prompts
from vlmfair.papers.lvlm_fairness.rationale import plan_final

with rule_log(snakemake.log[0]):
    params = snakemake.params
    prompts = load_prompts(snakemake.input.prompts, load_classes(snakemake.input.classes))
    samples = read_table(snakemake.input.samples, SAMPLES)
    requests = plan_final(
        samples,
        prompts,
        load_registry(params.models_file)[snakemake.wildcards.model],
        json.loads(Path(snakemake.input.sub_questions).read_text(encoding="utf-8")),
        read_table(snakemake.input.requests, REQUESTS),
        read_table(snakemake.input.responses, RESPONSES),
        style=params.style,
        prompt=params.prompt,
        images_per_shard=max(1, shard_count(len(evaluated_people(samples)), params.shards)),
        max_new_tokens=params.max_new_tokens,
    )
    manifest = {"prompts": prompts.digest(), "prompt_style": params.style}
    write_table(snakemake.output.requests, requests, REQUESTS, manifest=manifest)
