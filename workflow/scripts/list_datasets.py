"""List the datasets of the config: what is there, what is missing, and the counts of groups."""

from pathlib import Path

from vlmfair.config import read_yaml
from vlmfair.datasets.checklist import (
    CheckedDataset,
    as_checklist,
    as_markdown,
    check_raw,
    write_checklist,
)
from vlmfair.datasets.label_files import read_paths
from vlmfair.logs import rule_log
from vlmfair.provenance import write_text

with rule_log(snakemake.log[0]):
    sheet = read_yaml(snakemake.input.sheet)["datasets"]
    checked = []
    for name, raw, lacks, advice, listed, options in snakemake.params.datasets:
        asked_for = name in snakemake.params.asked
        if lacks or (snakemake.params.drawn and not asked_for):
            step = advice if asked_for else ""
            checked.append(CheckedDataset(name, raw, asked_for, found=False, next_step=step))
            continue
        checked.append(
            check_raw(
                name,
                raw,
                sheet[name],
                only=read_paths(Path(listed), fetch=advice) if listed else None,
                asked_for=asked_for,
                drawn=snakemake.params.drawn,
                options=dict(options),
                threads=snakemake.threads,
            )
        )
    checklist = as_checklist(checked, drawn=snakemake.params.drawn)
    write_text(snakemake.output.text, as_markdown(checklist))
    write_checklist(snakemake.output.table, checklist)
