"""Collect the sub-questions of each occupation: those of a model, else the committed ones."""

from vlmfair.contracts import REQUESTS, RESPONSES, read_table
from vlmfair.logs import rule_log
from vlmfair.papers.lvlm_fairness.questions import load_classes, load_sub_questions
from vlmfair.papers.lvlm_fairness.rationale import read_generated
from vlmfair.provenance import write_json

with rule_log(snakemake.log[0]):
    if snakemake.input.get("committed"):
        found = load_sub_questions(snakemake.input.committed)
    else:
        found = read_generated(
            read_table(snakemake.input.requests, REQUESTS),
            read_table(snakemake.input.responses, RESPONSES),
        )
    occupations = load_classes(snakemake.input.classes).evaluated
    write_json(snakemake.output[0], {name: list(found.get(name, ())) for name in occupations})
