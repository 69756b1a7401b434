"""Retrieve the demonstrations that are most similar to each query of one task."""

import pyarrow as pa

from vlmfair.contracts import SAMPLES, read_table, write_table
from vlmfair.inference.queries import CONTEXTS
from vlmfair.logs import rule_log
from vlmfair.models.encoders import load_clip
from vlmfair.papers.vl_bicle.items import load_wording, read_items
from vlmfair.papers.vl_bicle.retrieval import encode_items, retrieved_contexts
from vlmfair.papers.vl_bicle.tasks import task_named

with rule_log(snakemake.log[0]):
    inputs, params = snakemake.input, snakemake.params
    wording = load_wording(inputs.prompts, inputs.words, params.word_list)
    task = task_named(snakemake.wildcards.experiment)
    items = read_items(read_table(inputs.samples, SAMPLES), task, wording)
    encoder = dict(params.encoder[0])
    clip = load_clip(encoder["model"], encoder.get("weights"))
    features = encode_items(items, clip)
    tables = [
        retrieved_contexts(items, setting, features, shots=params.shots, seed=params.seed)
        for setting in params.settings
    ]
    contexts = pa.concat_tables(tables).unify_dictionaries()
    write_table(
        snakemake.output.contexts,
        contexts,
        CONTEXTS,
        manifest={"encoder": encoder, "pool": len(items.pool), "seed": params.seed},
    )
