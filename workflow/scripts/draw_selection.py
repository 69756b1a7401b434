"""Draw the two lists of selected images that belong to the drawn raw files."""

from pathlib import Path

from vlmfair.demo.raw_data import draw_selection
from vlmfair.logs import rule_log

with rule_log(snakemake.log[0]):
    draw_selection(
        Path(snakemake.output.fairface).parent,
        per_cell=snakemake.params.per_cell,
        per_tone=snakemake.params.per_tone,
        seed=snakemake.params.seed,
    )
