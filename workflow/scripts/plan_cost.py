"""Show what a run will cost."""

from pathlib import Path

from vlmfair.logs import rule_log

print(Path(snakemake.input[0]).read_text(encoding="utf-8"))
print(f"The same as a page: {snakemake.params.page}", flush=True)

with rule_log(snakemake.log[0]):
    pass
