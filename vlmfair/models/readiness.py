"""Which models of the sheet cannot be asked yet, told without loading torch.

Light by design (PyYAML and jsonschema), because the Snakefile asks at every parse.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping, Sequence

from vlmfair.errors import ConfigError
from vlmfair.models.registry import ModelEntry
from vlmfair.provenance import PACKAGE_ROOT

_FAMILIES_FILE = PACKAGE_ROOT / "models" / "families" / "__init__.py"


def known_families() -> tuple[str, ...]:
    """Return the names in `FAMILIES` of the package of families, read from its source.

    Importing it would load torch. Raises ConfigError when FAMILIES is no plain dictionary there.
    """
    value = _assigned("FAMILIES")
    if not isinstance(value, ast.Dict):
        raise ConfigError(
            f"{_FAMILIES_FILE}: FAMILIES is not a dictionary written out there. "
            f"Write FAMILIES = {{name: module}}."
        )
    return tuple(sorted(str(ast.literal_eval(key)) for key in value.keys if key))


def needs_legacy_environment(family: str) -> bool:
    """Whether models of a family bring their own code, which needs an older transformers.

    Raises ConfigError when REMOTE_CODE_FAMILIES is no tuple written out beside FAMILIES.
    """
    value = _assigned("REMOTE_CODE_FAMILIES")
    if not isinstance(value, ast.Tuple):
        raise ConfigError(
            f"{_FAMILIES_FILE}: REMOTE_CODE_FAMILIES is not a tuple written out there. "
            f'Write REMOTE_CODE_FAMILIES = ("name", ...).'
        )
    return family in ast.literal_eval(value)


def most_images_of(family: str) -> int | None:
    """Return how many images a prompt of a family can hold, read from the family's source.

    None where nothing but the context limits it, and for a family without a module.
    """
    modules = _assigned("FAMILIES")
    places = ast.literal_eval(modules) if isinstance(modules, ast.Dict) else {}
    if family not in places:
        return None
    file = PACKAGE_ROOT / "models" / "families" / f"{places[family].rpartition('.')[2]}.py"
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "most_images" for target in node.targets
        ):
            return int(ast.literal_eval(node.value))
    return None


@functools.cache
def _assigned(name: str) -> ast.expr | None:
    """Return what the source of the families assigns to a name."""
    for node in ast.parse(_FAMILIES_FILE.read_text(encoding="utf-8")).body:
        if not isinstance(node, ast.Assign | ast.AnnAssign):
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            return node.value
    return None


def unready_models(names: Sequence[str], registry: Mapping[str, ModelEntry]) -> str:
    """Return one sentence on the models of `names` that cannot be asked yet; "" if all can.

    A model needs a module for its family, and a repository of the hub a revision.
    """
    families = known_families()
    # Models behind a server have neither.
    loaded = [registry[name] for name in names if registry[name].api is None]
    without_module = sorted({entry.family for entry in loaded} - set(families))
    faults = []
    for entry in loaded:
        lacks = []
        if entry.family in without_module:
            lacks.append(f"no module for the family {entry.family}")
        if entry.lacks_revision:
            lacks.append("no revision")
        if lacks:
            faults.append(f"{entry.name} ({' and '.join(lacks)})")
    if not faults:
        return ""
    remedies = []
    if any(entry.lacks_revision for entry in loaded):
        remedies.append(
            "write revision: <40-hex commit of the model repository> in each entry, or run "
            "snakemake fetch_models, which locks the newest ones"
        )
    if without_module:
        remedies.append(
            f"leave out the models of {', '.join(without_module)}, or add these modules to "
            f"vlmfair/models/families (it has {', '.join(families)})"
        )
    advice = "; ".join(remedies)
    return (
        f"{loaded[0].sheet}: {len(faults)} of {len(names)} models cannot be asked yet: "
        f"{', '.join(faults)}. {advice[0].upper()}{advice[1:]}."
    )
