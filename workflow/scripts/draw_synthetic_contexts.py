"""Draw the demonstrations of MS and FS with drawn images in place of photographs."""

import pyarrow as pa

from vlmfair.contracts import SAMPLES, read_table, write_table
from vlmfair.inference.queries import CONTEXTS
from vlmfair.logs import rule_log
from vlmfair.papers.vl_bicle.contexts import shared_contexts
from vlmfair.papers.vl_bicle.items import load_wording, read_items
from vlmfair.papers.vl_bicle.synthetic_items import share_pool
from vlmfair.papers.vl_bicle.tasks import runs_of, task_named
from vlmfair.synthesis.table import DRAWN

with rule_log(snakemake.log[0]):
    inputs, params = snakemake.input, snakemake.params
    wording = load_wording(inputs.prompts, inputs.words, params.word_list)
    task = task_named(snakemake.wildcards.experiment)
    items = read_items(read_table(inputs.samples, SAMPLES), task, wording)
    drawn = {
        source: read_table(path, DRAWN)
        for source, path in zip(params.sources, inputs.drawn, strict=True)
    }
    pool = share_pool(items, drawn)
    tables = [
        shared_contexts(
            pool.items[source],
            setting,
            run,
            shots=params.shots,
            seed=params.seed,
            image_source=source,
        )
        for source in params.sources
        for setting in params.settings
        for run in runs_of(setting, params.runs)
    ]
    contexts = pa.concat_tables(tables).unify_dictionaries()
    manifest = {"dropped": len(pool.dropped), "seed": params.seed}
    write_table(snakemake.output.contexts, contexts, CONTEXTS, manifest=manifest)
