"""Plan the questions of one task of vl_bicle to one model."""

from vlmfair.contracts import REQUESTS, SAMPLES, read_table, write_table
from vlmfair.inference.queries import CONTEXTS
from vlmfair.inference.sharding import shard_count
from vlmfair.logs import rule_log
from vlmfair.models.registry import load_registry
from vlmfair.papers.vl_bicle.items import load_wording, read_items
from vlmfair.papers.vl_bicle.plan import plan_task
from vlmfair.papers.vl_bicle.tasks import task_named
from vlmfair.provenance import write_json

with rule_log(snakemake.log[0]):
    inputs, params = snakemake.input, snakemake.params
    wording = load_wording(inputs.prompts, inputs.words, params.word_list)
    task = task_named(snakemake.wildcards.experiment)
    items = read_items(read_table(inputs.samples, SAMPLES), task, wording)
    plan = plan_task(
        items,
        load_registry(params.models_file)[snakemake.wildcards.model],
        [read_table(path, CONTEXTS) for path in inputs.contexts],
        shots=params.shots,
        # Spread evenly, so that no job has the rest of what was announced.
        images_per_shard=max(1, shard_count(len(items.queries), params.chunks)),
        groups_per_shard=params.groups_per_shard,
        max_new_tokens=params.max_new_tokens,
        most_images=params.most_images or None,
    )
    manifest = {
        "prompts": wording.prompts.digest(),
        "words": wording.words.name,
        "left_out": len(items.left_out),
        "skipped_cells": len(plan.skipped),
    }
    write_json(snakemake.output.skipped, {"skipped": plan.skipped_rows()})
    write_table(snakemake.output.requests, plan.requests, REQUESTS, manifest=manifest)
