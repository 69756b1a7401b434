"""Every helper function of the workflow; rules files hold rules only."""

import json
import os
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError

ROOT = Path(workflow.basedir)
# Imports from the folder of the Snakefile work in scripts; here it has to be said.
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from vlmfair.artefacts import built_artefacts, load_artefacts
from vlmfair.config import check_config, read_yaml
from vlmfair.errors import VlmfairError
from vlmfair.inference.sharding import shard_count
from vlmfair.papers.gras.artefacts import LIST_FILES, stems
from vlmfair.papers.gras.questions import load_traits, select_traits
from vlmfair.provenance import code_digest, sha256_of_file


def checked_config():
    """Check all configuration files; a fault is one sentence, not a schema dump."""
    try:
        check_config(config, ROOT / "config/schemas/config.schema.json", "config")
        models = read_yaml(ROOT / config["models_file"])
        check_config(
            models, ROOT / "config/schemas/models.schema.json", config["models_file"]
        )
        datasets = read_yaml(ROOT / config["datasets_file"])
        check_config(
            datasets,
            ROOT / "config/schemas/datasets.schema.json",
            config["datasets_file"],
        )
        for name in config["gras"]["models"]:
            if name not in models["models"]:
                raise WorkflowError(
                    f"config: gras.models: {name} is not in {config['models_file']}. "
                    f"Add an entry for it or correct the name; there are "
                    f"{', '.join(sorted(models['models']))}."
                )
        artefacts = load_artefacts(ROOT / "config/artefacts.yaml")
        return models["models"], datasets["datasets"], artefacts
    except VlmfairError as error:
        raise WorkflowError(str(error)) from None


SUITE_FOLDER = f"results/{config.get('suite', 'demo')}"
MODELS, DATASETS, ARTEFACTS = checked_config()


def code(script):
    """Digest of a script and of what it imports: a changed function re-runs what uses it."""
    return code_digest(ROOT / "workflow/scripts" / f"{script}.py")


def as_param(value):
    """A config value as sorted tuples and scalars, so that equal settings compare equal."""
    if isinstance(value, dict):
        return tuple((key, as_param(value[key])) for key in sorted(value))
    if isinstance(value, list):
        return tuple(as_param(entry) for entry in value)
    return value


def raw_files_are_drawn():
    """Whether the workflow draws the raw files instead of finding them."""
    return config["drawn_seed"] is not None


def raw_folder(wildcards):
    """The raw folder as an input where the workflow makes it; else the parser looks for it and says what to do."""
    folder = config["datasets"][wildcards.dataset]["raw"]
    return [folder] if raw_files_are_drawn() else []


def dataset_advice(wildcards):
    """How to get a dataset's raw files, for the error of a parser that does not find them."""
    return DATASETS[wildcards.dataset]["get"]


def selection_lists(wildcards):
    """The two published lists, as inputs where they exist or will be drawn."""
    if config["gras"]["selection"] != "published":
        return []
    folder = Path(config["gras"]["selection_lists"])
    files = [str(folder / name) for name in LIST_FILES.values()]
    found = all(os.path.exists(name) for name in files)
    return files if found or raw_files_are_drawn() else []


def evaluation_results(wildcards):
    """The published result files, so that another download of them is audited again."""
    folder = config["gras_evaluation_results"]
    return sorted(map(str, Path(folder).glob("*.csv"))) if folder else []


def paper_temperatures(wildcards):
    """The temperatures of the paper whose questions are asked."""
    return as_param(config[wildcards.paper]["temperatures"])


def model_entry(wildcards):
    """One model's entry, for the steps that do not read its weights."""
    return as_param(MODELS[wildcards.model])


def model_settings(wildcards):
    """One model's entry and, for weights that lie in a folder, their content."""
    entry = MODELS[wildcards.model]
    folder = ROOT / entry["path"] if entry.get("path") else None
    if folder is None or not folder.is_dir():
        return model_entry(wildcards)
    files = sorted(path for path in folder.iterdir() if path.is_file())
    return model_entry(wildcards), tuple(
        (path.name, sha256_of_file(path)) for path in files
    )


def gras_shard_count():
    """How many inference jobs one model has; it follows from the number of images."""
    images = 70 * config["gras"]["per_cell"] + 10 * config["gras"]["per_tone"]
    return shard_count(images, config["gras"]["images_per_shard"])


def gras_shards(wildcards):
    """The responses of every shard of one model."""
    folder = f"<suite>/gras/responses/{wildcards.model}"
    return [f"{folder}/{shard}.parquet" for shard in range(gras_shard_count())]


def growing(amount):
    """A resource that doubles with each attempt."""
    return lambda wildcards, attempt: amount * 2 ** (attempt - 1)


def asked_traits():
    """The trait words that the run asks about, in the order of the paper's Table 4."""
    try:
        known = load_traits(ROOT / "resources/words/gras_traits.csv")
        return [trait.word for trait in select_traits(known, config["gras"]["traits"])]
    except VlmfairError as error:
        raise WorkflowError(str(error)) from None


def artefact_files(paper, kind=None):
    """Every file of a paper's tables and figures, as config/artefacts.yaml lists them."""
    files, traits = [], asked_traits()
    for artefact in built_artefacts(ARTEFACTS, paper):
        if kind not in (None, artefact.kind):
            continue
        for stem in stems(artefact.stem, config[paper]["models"], traits):
            files += [
                f"<suite>/{artefact.folder}/{stem}.{suffix}"
                for suffix in artefact.suffixes
            ]
    return files


def single_artefacts(paper, kind):
    """The tables or figures of a paper that are one file each."""
    return [
        entry
        for entry in built_artefacts(ARTEFACTS, paper)
        if entry.kind == kind and not entry.family
    ]


def figure_families(paper):
    """The figures of a paper that are one file per model and page."""
    return [
        entry
        for entry in built_artefacts(ARTEFACTS, paper)
        if entry.kind == "figure" and entry.family
    ]


# What every table and figure of GRAS is drawn from.
GRAS_FACTS = {
    "metrics": "<suite>/gras/metrics.parquet",
    "images": "<suite>/gras/images.parquet",
    "selection": "<suite>/gras/selection.csv",
    "traits": "resources/words/gras_traits.csv",
    "prompts": "resources/prompts/gras.yaml",
    "manifests": [
        f"<suite>/gras/responses/{model}.manifest.json"
        for model in config["gras"]["models"]
    ],
}


def gras_facts_params():
    """The settings that tables and figures of GRAS show."""
    return {
        "models_file": config["models_file"],
        "models": as_param(config["gras"]["models"]),
        "titles": as_param(
            {
                model: MODELS[model].get("title", model)
                for model in config["gras"]["models"]
            }
        ),
        "chosen_traits": as_param(config["gras"]["traits"]),
        "style": config["gras"]["prompt_style"],
        "alpha": config["gras"]["alpha"],
    }


def caption_files(paper):
    """The captions of what is built, each in a file of its own."""
    return [entry.caption for entry in built_artefacts(ARTEFACTS, paper)]


CONFIG_TEXT = json.dumps(config, indent=2, sort_keys=True)
