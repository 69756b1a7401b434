"""Ask for the photographs of VisoGender; the list says what is missing, and why."""

import logging
from pathlib import Path

from vlmfair.datasets.visogender import addresses, folder_of_tables, photograph_of
from vlmfair.logs import rule_log
from vlmfair.provenance import write_bytes
from vlmfair.retrieval.client import Client
from vlmfair.retrieval.photograph_list import LIST, Wanted, count_by_status
from vlmfair.retrieval.photographs import fetch_photographs

# A photograph is small: a server that is slower than this has lost it.
CONNECT_TIMEOUT, READ_TIMEOUT = 10.0, 30.0

with rule_log(snakemake.log[0]):
    folder = folder_of_tables(Path(snakemake.params.raw))
    wanted = [
        Wanted(number, address, photograph_of(address))
        for number, address in addresses(folder, snakemake.params.version)
    ]
    client = Client(connect_timeout=CONNECT_TIMEOUT, read_timeout=READ_TIMEOUT)
    found = fetch_photographs(wanted, folder, client)
    logging.info("photographs: %s", count_by_status(found))
    write_bytes(snakemake.output[0], (folder / LIST).read_bytes())
