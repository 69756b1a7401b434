"""Measure one model: error and reveal rates, and their shifts with demonstrations."""

import json
from itertools import chain
from pathlib import Path

import pyarrow as pa

from vlmfair.contracts import JUDGEMENTS, METRICS, read_table, write_table
from vlmfair.logs import rule_log
from vlmfair.papers.vl_bicle.measure import measure_model
from vlmfair.papers.vl_bicle.measure_mitigation import TASK as DRAWN_FOR
from vlmfair.papers.vl_bicle.measure_mitigation import measure_mitigation

with rule_log(snakemake.log[0]):
    # .../judgements/<task>/<model>.parquet
    places = [Path(path) for path in snakemake.input.judgements]
    skipped = [json.loads(Path(p).read_text("utf-8"))["skipped"] for p in snakemake.input.skipped]
    judgements = {path.parts[-2]: read_table(path, JUDGEMENTS) for path in places}
    settings = {
        "model": snakemake.wildcards.model,
        "bootstraps": snakemake.params.bootstraps,
        "seed": snakemake.params.seed,
    }
    metrics = measure_model(judgements, skipped=chain.from_iterable(skipped), **settings)
    if DRAWN_FOR in judgements:
        mitigation = measure_mitigation(judgements[DRAWN_FOR], **settings)
        metrics = pa.concat_tables([metrics, mitigation])
    write_table(snakemake.output.metrics, metrics, METRICS)
