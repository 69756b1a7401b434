"""Answer the questions of one shard: from the answer store, else by the model."""

import logging

import pyarrow as pa

from vlmfair.contracts import REQUESTS, RESPONSES, read_table, write_table
from vlmfair.inference.label_sets import load_label_sets
from vlmfair.inference.lease import lease_devices
from vlmfair.inference.queries import CONTEXTS
from vlmfair.inference.shard import answer_shard, check_errors
from vlmfair.logs import rule_log
from vlmfair.models.loading import SPLIT, check_gpus
from vlmfair.models.registry import load_registry

with rule_log(snakemake.log[0]):
    requests = read_table(
        snakemake.input.requests,
        REQUESTS,
        filters=[("shard", "==", int(snakemake.wildcards.shard))],
    )
    entry = load_registry(snakemake.params.models_file)[snakemake.wildcards.model]
    scored = "score" in requests["mode"].unique().to_pylist()
    label_sets = load_label_sets(snakemake.input.prompts) if scored else {}
    contexts = [read_table(path, CONTEXTS) for path in snakemake.input.get("contexts", ())]
    shown = pa.concat_tables(contexts).unify_dictionaries() if contexts else None
    asked = (requests, shown, entry, label_sets)
    places = (snakemake.params.temperatures, snakemake.params.store)
    if entry.api is not None:
        # Only here, so that local models need no package of a server's.
        from vlmfair.inference.api_shard import answer_api_shard

        # Not a param of the rule: with a higher cap only what is unfinished runs again.
        money_cap = snakemake.config["inference"]["money_cap"]
        answered = answer_api_shard(*asked, *places, money_cap=money_cap)
    else:
        device = snakemake.params.device
        gpus = 0 if device == "cpu" else snakemake.resources.get("gpu", 0)
        check_gpus(entry, gpus)
        with lease_devices(gpus, job=" ".join(["infer", *snakemake.wildcards])) as leased:
            answered = answer_shard(
                *asked,
                *places,
                device=SPLIT if len(leased) > 1 else device,
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
