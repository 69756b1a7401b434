"""Count the images of each gender, and who is shown as a demonstration."""

import pyarrow as pa

from vlmfair.contracts import METRICS, SAMPLES, read_table, write_table
from vlmfair.inference.queries import CONTEXTS
from vlmfair.logs import rule_log
from vlmfair.papers.vl_bicle.items import load_wording, read_items
from vlmfair.papers.vl_bicle.measure_data import measure_contexts, measure_data
from vlmfair.papers.vl_bicle.tasks import task_named

with rule_log(snakemake.log[0]):
    inputs, params = snakemake.input, snakemake.params
    wording = load_wording(inputs.prompts, inputs.words, params.word_list)
    items = [
        read_items(read_table(path, SAMPLES), task_named(name), wording)
        for name, path in zip(params.tasks, inputs.samples, strict=True)
    ]
    contexts = [read_table(path, CONTEXTS) for path in inputs.contexts]
    tables = [measure_data(items), measure_contexts(contexts, items)]
    write_table(snakemake.output.metrics, pa.concat_tables(tables), METRICS)
