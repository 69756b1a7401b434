"""Show the lists of datasets and models, and stop where one is missing or not as it should be."""

from pathlib import Path

from vlmfair.datasets.checklist import read_checklist, require_complete
from vlmfair.errors import VlmfairError
from vlmfair.logs import rule_log
from vlmfair.models.checklist import as_markdown, check_component, check_model, require_models
from vlmfair.models.components import load_components
from vlmfair.models.lock import lock_path, read_lock
from vlmfair.models.registry import load_registry

sheet = snakemake.params.models_file
registry, components = load_registry(sheet), load_components(sheet)
locked = read_lock(lock_path(sheet))
models = [check_model(registry[name]) for name in snakemake.params.models]
models += [
    check_component(components[name], locked.get(name)) for name in snakemake.params.components
]
print(Path(snakemake.input.text).read_text(encoding="utf-8"))
print(as_markdown(models), flush=True)

with rule_log(snakemake.log[0]):
    faults = []
    try:
        require_complete(read_checklist(snakemake.input.table), snakemake.input.text)
    except VlmfairError as error:
        faults.append(str(error))
    try:
        require_models(models)
    except VlmfairError as error:
        faults.append(str(error))
    if faults:
        raise VlmfairError(" ".join(faults))
