"""Take the authors' two selection lists, or evenly spaced rows of them for a trial."""

from pathlib import Path

from vlmfair.bench.full_size_lists import shorten_lists
from vlmfair.logs import rule_log
from vlmfair.papers.gras.artefacts import LIST_FILES
from vlmfair.papers.gras.selection import check_list_digest
from vlmfair.provenance import write_bytes, write_text

with rule_log(snakemake.log[0]):
    lists = {dataset: Path(snakemake.input[dataset]) for dataset in LIST_FILES}
    for dataset, digest in snakemake.params.sha256:
        # Before thousands of pictures are drawn for the wrong list.
        if digest:
            check_list_digest(lists[dataset], digest)
    images = snakemake.params.images
    shortened = shorten_lists(lists, images) if images else {}
    for dataset, path in lists.items():
        if images:
            write_text(snakemake.output[dataset], shortened[dataset])
        else:
            write_bytes(snakemake.output[dataset], path.read_bytes())
