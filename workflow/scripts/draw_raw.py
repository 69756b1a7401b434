"""Draw the raw download of one dataset."""

from pathlib import Path

from vlmfair.demo.raw_data import draw_raw
from vlmfair.logs import rule_log

with rule_log(snakemake.log[0]):
    draw_raw(
        Path(snakemake.output[0]),
        snakemake.wildcards.dataset,
        seed=snakemake.params.seed,
        **dict(snakemake.params.sizes),
    )
