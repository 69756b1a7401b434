"""Download the models that a run needs, lock what came, and compare what was there already."""

import logging

from vlmfair.errors import ModelError
from vlmfair.logs import rule_log
from vlmfair.models.components import load_components
from vlmfair.models.fetch import fetch_model, source_of_component, source_of_model
from vlmfair.models.registry import load_registry
from vlmfair.models.weights import MEMORY

with rule_log(snakemake.log[0]):
    sheet = snakemake.params.models_file
    registry, components = load_registry(sheet), load_components(sheet)
    sources = [source_of_model(registry[name]) for name in snakemake.params.models]
    sources += [
        source_of_component(components[name], sheet) for name in snakemake.params.components
    ]
    faults = []
    for source in filter(None, sources):
        try:
            fetched = fetch_model(source, memory=MEMORY)
        except ModelError as error:
            # One gated model does not keep the others from coming.
            logging.error("%s", error)
            faults.append(str(error))
            continue
        logging.info(
            "%s: %s, %.1f GB at %s in %s",
            fetched.name,
            "downloaded and locked" if fetched.downloaded else "is what was locked",
            fetched.locked.size / 1e9,
            fetched.locked.revision,
            fetched.folder,
        )
    if faults:
        raise ModelError(" ".join(faults))
