"""Draw the captions of one shard: from the store of images, else by the pipeline."""

import logging

from vlmfair.contracts import read_table, write_table
from vlmfair.inference.lease import lease_devices
from vlmfair.logs import rule_log
from vlmfair.synthesis.gather import check_drawn
from vlmfair.synthesis.generators import make_generator
from vlmfair.synthesis.shard import draw_shard
from vlmfair.synthesis.table import DRAWN, PROMPTS

with rule_log(snakemake.log[0]):
    params, name = snakemake.params, snakemake.wildcards.generator
    prompts = read_table(
        snakemake.input.prompts,
        PROMPTS,
        filters=[("shard", "==", int(snakemake.wildcards.shard))],
    )
    gpus = 0 if params.device == "cpu" else snakemake.resources.get("gpu", 0)
    with lease_devices(gpus, job=" ".join(["synthesize", *snakemake.wildcards])):
        drawn, manifest = draw_shard(
            prompts,
            make_generator(name, dict(params.generator[0])),
            params.store,
            device=params.device,
            threads=snakemake.threads,
        )
    counts = manifest["images"]
    logging.info("%d images from the store, %d asked for", counts["stored"], counts["asked"])
    check_drawn(drawn, params.tolerated, name)
    write_table(snakemake.output.drawn, drawn, DRAWN, manifest=manifest)
