"""Show the list of datasets, and stop where one is missing or not as a paper counts it."""

from pathlib import Path

from vlmfair.datasets.checklist import read_checklist, require_complete
from vlmfair.logs import rule_log

print(Path(snakemake.input.text).read_text(encoding="utf-8"), flush=True)

with rule_log(snakemake.log[0]):
    require_complete(read_checklist(snakemake.input.table), snakemake.input.text)
