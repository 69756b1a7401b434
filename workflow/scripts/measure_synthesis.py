"""Measure how well drawn images fit their captions, and count what was not drawn."""

from vlmfair.contracts import METRICS, SAMPLES, read_table, write_table
from vlmfair.logs import rule_log
from vlmfair.models.encoders import load_clip
from vlmfair.papers.vl_bicle.items import load_wording, read_items
from vlmfair.papers.vl_bicle.measure_synthetic import measure_images
from vlmfair.papers.vl_bicle.synthetic_items import share_pool
from vlmfair.papers.vl_bicle.tasks import task_named
from vlmfair.synthesis.table import DRAWN
from vlmfair.text.counterparts import load_counterparts

with rule_log(snakemake.log[0]):
    inputs, params = snakemake.input, snakemake.params
    wording = load_wording(inputs.prompts, inputs.words, params.word_list)
    items = read_items(read_table(inputs.samples, SAMPLES), task_named("coco_bias"), wording)
    tables = [read_table(path, DRAWN) for path in inputs.drawn]
    drawn = dict(zip(params.sources, tables, strict=True))
    encoder = dict(params.encoder[0])
    metrics = measure_images(
        share_pool(items, drawn),
        drawn,
        load_clip(encoder["model"], encoder.get("weights")),
        wording.words,
        load_counterparts(inputs.counterparts),
        reader=params.reader,
        bootstraps=params.bootstraps,
        seed=params.seed,
    )
    write_table(snakemake.output.metrics, metrics, METRICS, manifest={"reader": params.reader})
