"""Answer the questions of one shard: from the answer store, else by the model."""

import logging

from vlmfair.contracts import REQUESTS, RESPONSES, read_table, write_table
from vlmfair.inference.label_sets import load_label_sets
from vlmfair.inference.shard import answer_shard, check_errors
from vlmfair.logs import rule_log
from vlmfair.models.registry import load_registry

with rule_log(snakemake.log[0]):
    requests = read_table(
        snakemake.input.requests,
        REQUESTS,
        filters=[("shard", "==", int(snakemake.wildcards.shard))],
    )
    answered = answer_shard(
        requests,
        None,
        load_registry(snakemake.params.models_file)[snakemake.wildcards.model],
        load_label_sets(snakemake.input.prompts),
        snakemake.params.temperatures,
        snakemake.params.store,
        device=snakemake.params.device,
        batch_size=snakemake.params.batch_size,
        threads=snakemake.threads,
    )
    counts = answered.manifest["answers"]
    logging.info("%d answers from the store, %d computed", counts["stored"], counts["asked"])
    check_errors(
        requests, answered.responses, snakemake.params.tolerated, snakemake.wildcards.model
    )
    write_table(
        snakemake.output.responses, answered.responses, RESPONSES, manifest=answered.manifest
    )
