"""Draw the raw download of one dataset that holds the images of a selection list."""

from pathlib import Path

from vlmfair.demo.raw_listed import draw_listed
from vlmfair.logs import rule_log

with rule_log(snakemake.log[0]):
    draw_listed(
        Path(snakemake.output[0]),
        snakemake.wildcards.dataset,
        Path(snakemake.input[0]),
        seed=snakemake.params.seed,
    )
