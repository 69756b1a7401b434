"""The configuration and its sheets of models, datasets and artefacts, checked against each other.

Light by design (PyYAML and jsonschema), because the Snakefile loads them at every parse.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vlmfair.artefacts import Artefact, load_artefacts
from vlmfair.config import check_config, read_yaml
from vlmfair.errors import ConfigError
from vlmfair.models.components import Component, load_components
from vlmfair.models.registry import ModelEntry, load_registry


@dataclass(frozen=True)
class Sheets:
    """What the configuration refers to.

    `models` has the settings of each model as written, with the locked revision where they state
    none, `registry` the same as entries; `datasets` has the facts about each dataset.
    """

    models: Mapping[str, Mapping[str, Any]]
    registry: Mapping[str, ModelEntry]
    datasets: Mapping[str, Mapping[str, Any]]
    artefacts: tuple[Artefact, ...]
    components: Mapping[str, Component]


def load_sheets(config: Mapping[str, Any], root: Path, files: Iterable[str] = ()) -> Sheets:
    """Check a merged configuration and load its sheets; paths in it are relative to `root`.

    `files` are the YAML files that it was merged from. Raises ConfigError, one sentence, on the
    first fault.
    """
    for path in files:
        read_yaml(path)
    schemas = root / "config" / "schemas"
    check_config(config, schemas / "config.schema.json", "config")
    models_file, datasets_file = config["models_file"], config["datasets_file"]
    registry = load_registry(root / models_file, name=models_file)
    datasets = read_yaml(root / datasets_file)
    check_config(datasets, schemas / "datasets.schema.json", datasets_file)
    for paper, names in models_by_paper(config).items():
        _check_names(names, registry, f"config: {paper}.models", models_file)
    generator = config["lvlm_fairness"]["generator"]
    if generator:
        _check_names([generator], registry, "config: lvlm_fairness.generator", models_file)
    judge = config["vl_bicle"]["judge"]
    if judge != "lexical":
        _check_names([judge], registry, "config: vl_bicle.judge", models_file)
    _check_transforms(registry, datasets["datasets"], models_file, datasets_file)
    if config["drawn_seed"] is not None:
        _check_drawn_folders(config)
    artefacts = load_artefacts(root / "config" / "artefacts.yaml")
    models = {
        name: _with_revision(settings, registry[name])
        for name, settings in read_yaml(root / models_file)["models"].items()
    }
    components = load_components(root / models_file, name=models_file)
    return Sheets(models, registry, datasets["datasets"], artefacts, components)


def _with_revision(settings: dict[str, Any], entry: ModelEntry) -> dict[str, Any]:
    return {**settings, "revision": entry.revision} if entry.locked else settings


def models_by_paper(config: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the models that each paper's section asks, in their order."""
    sections = {key: value for key, value in config.items() if isinstance(value, Mapping)}
    return {key: list(value["models"]) for key, value in sections.items() if "models" in value}


def _check_names(
    names: Iterable[str], models: Mapping[str, ModelEntry], where: str, sheet: str
) -> None:
    for name in names:
        if name not in models:
            raise ConfigError(
                f"{where}: {name} is not in {sheet}. Add an entry for it or correct "
                f"the name; there are {', '.join(sorted(models))}."
            )


def _check_transforms(
    models: Mapping[str, ModelEntry], datasets: Iterable[str], sheet: str, datasets_file: str
) -> None:
    """A transform of a dataset that does not exist would be left out without a word."""
    for name, entry in models.items():
        for dataset in sorted(set(entry.image_transforms) - set(datasets)):
            raise ConfigError(
                f"{sheet}: {name}.image_transforms: {dataset} is not a dataset of {datasets_file}. "
                f"Write one of {', '.join(sorted(datasets))}."
            )


def _check_drawn_folders(config: Mapping[str, Any]) -> None:
    """Drawn files lie below the suite's own folder; another one would never be filled."""
    drawn = f"results/{config['suite']}/raw"
    wanted = {
        f"datasets.{name}.raw": (settings["raw"], f"{drawn}/{name}")
        for name, settings in config["datasets"].items()
    }
    if config["gras"]["selection"] == "published":
        wanted["gras.selection_lists"] = (config["gras"]["selection_lists"], f"{drawn}/gras")
    wrong = {key: right for key, (is_, right) in wanted.items() if posixpath.normpath(is_) != right}
    if wrong:
        raise ConfigError(
            f"config: drawn_seed has the raw files of the suite {config['suite']} drawn below "
            f"{drawn}, and {', '.join(wrong)} name{'s' * (len(wrong) == 1)} another folder. Write "
            f"{', '.join(f'{key}: {right}' for key, right in wrong.items())}; or drawn_seed: null "
            f"for a download of your own."
        )
