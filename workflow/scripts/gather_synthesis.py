"""Join the shards of one generator: each caption once, none missing, its images in one folder."""

import json
from pathlib import Path

from vlmfair.contracts import manifest_path, read_table, write_table
from vlmfair.logs import rule_log
from vlmfair.synthesis.gather import check_drawn, gather_images, manifest_of
from vlmfair.synthesis.table import DRAWN, PROMPTS

with rule_log(snakemake.log[0]):
    inputs, name = snakemake.input, snakemake.wildcards.generator
    shards = [read_table(path, DRAWN) for path in inputs.shards]
    manifests = [json.loads(manifest_path(path).read_text("utf-8")) for path in inputs.shards]
    prompts = read_table(inputs.prompts, PROMPTS)
    drawn = gather_images(prompts, shards, Path(snakemake.output.images), name)
    check_drawn(drawn, snakemake.params.tolerated, name)
    write_table(snakemake.output.drawn, drawn, DRAWN, manifest=manifest_of(drawn, manifests))
