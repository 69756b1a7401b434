"""Draw the demonstrations of one task in RS, MS, FS and BS, and that of zero shots."""

import pyarrow as pa

from vlmfair.contracts import SAMPLES, read_table, write_table
from vlmfair.inference.queries import CONTEXTS
from vlmfair.logs import rule_log
from vlmfair.papers.vl_bicle.contexts import shared_contexts, zero_shot_contexts
from vlmfair.papers.vl_bicle.items import load_wording, read_items
from vlmfair.papers.vl_bicle.synthetic_items import share_pool
from vlmfair.papers.vl_bicle.tasks import REAL, SAMPLED, runs_of, task_named
from vlmfair.synthesis.table import DRAWN

with rule_log(snakemake.log[0]):
    inputs, params = snakemake.input, snakemake.params
    wording = load_wording(inputs.prompts, inputs.words, params.word_list)
    task = task_named(snakemake.wildcards.experiment)
    items = read_items(read_table(inputs.samples, SAMPLES), task, wording)
    # Only the task that images are drawn for has them.
    drawn = {source: read_table(path, DRAWN) for source, path in zip(params.sources, inputs.drawn)}
    # Compared with drawn images, so that what none of them shows is left out here, too.
    compared = share_pool(items, drawn).items[REAL] if drawn else items
    tables = [zero_shot_contexts(items)] + [
        shared_contexts(
            compared if setting in params.settings else items,
            setting,
            run,
            shots=params.shots,
            seed=params.seed,
        )
        for setting in SAMPLED
        for run in runs_of(setting, params.runs)
    ]
    contexts = pa.concat_tables(tables).unify_dictionaries()
    manifest = {"pool": len(items.pool), "queries": len(items.queries), "seed": params.seed}
    write_table(snakemake.output.contexts, contexts, CONTEXTS, manifest=manifest)
