"""List the datasets of the config: what is there, what is missing, and the counts of groups."""

from vlmfair.config import read_yaml
from vlmfair.contracts import PROBLEMS, SAMPLES, read_table
from vlmfair.datasets import ParsedDataset
from vlmfair.datasets.checklist import (
    CheckedDataset,
    as_checklist,
    as_markdown,
    check_parsed,
    write_checklist,
)
from vlmfair.logs import rule_log
from vlmfair.provenance import write_text

# What a dataset lacks, and the key of the sheet that says how to get it.
ADVICE = {"raw": "get", "list": "get_list"}

with rule_log(snakemake.log[0]):
    sheet = read_yaml(snakemake.input.sheet)["datasets"]
    names = snakemake.params.readable
    tables = dict(zip(names, zip(snakemake.input.samples, snakemake.input.problems)))
    checked = []
    for name, raw, missing, options in snakemake.params.datasets:
        asked_for = name in snakemake.params.asked
        if name in tables:
            samples, problems = tables[name]
            parsed = ParsedDataset(read_table(samples, SAMPLES), read_table(problems, PROBLEMS))
            done = check_parsed(
                name, raw, parsed, sheet[name], asked_for=asked_for, options=dict(options)
            )
        else:
            step = sheet[name][ADVICE[missing]] if asked_for else ""
            done = CheckedDataset(name, raw, asked_for, found=False, next_step=step)
        checked.append(done)
    checklist = as_checklist(checked, drawn=snakemake.params.drawn)
    write_text(snakemake.output.text, as_markdown(checklist))
    write_checklist(snakemake.output.table, checklist)
