"""Choose the balanced image set of GRAS and count what is left out."""

from pathlib import Path

from vlmfair.contracts import PROBLEMS, SAMPLES, read_table, write_table
from vlmfair.logs import rule_log
from vlmfair.papers.gras.artefacts import LIST_FILES
from vlmfair.papers.gras.selection import (
    check_list_digest,
    check_share_left_out,
    select_images,
    selection_statistics,
)
from vlmfair.provenance import write_text

with rule_log(snakemake.log[0]):
    lists = {name: Path(snakemake.params.lists) / file for name, file in LIST_FILES.items()}
    published = snakemake.params.selection == "published"
    for dataset, digest in snakemake.params.sha256:
        if published and digest:
            check_list_digest(lists[dataset], digest)
    files = {name: snakemake.input[f"{name}_problems"] for name in LIST_FILES}
    selected = select_images(
        {name: read_table(snakemake.input[name], SAMPLES) for name in LIST_FILES},
        method=snakemake.params.selection,
        lists=lists,
        problems={name: read_table(path, PROBLEMS) for name, path in files.items()},
        per_cell=snakemake.params.per_cell,
        per_tone=snakemake.params.per_tone,
        seed=snakemake.params.seed,
    )
    check_share_left_out(selected, snakemake.params.tolerated, files)
    statistics = selection_statistics(selected.samples, selected.problems)
    write_text(snakemake.output.statistics, statistics.to_csv(index=False))
    write_table(snakemake.output.problems, selected.problems, PROBLEMS)
    write_table(snakemake.output.images, selected.samples, SAMPLES)
