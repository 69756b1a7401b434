"""Every helper function of the workflow; rules files hold rules only."""

import functools
import itertools
import json
import os
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.logging import logger

from vlmfair.artefacts import built_artefacts
from vlmfair.config import read_yaml
from vlmfair.errors import VlmfairError
from vlmfair.inference.sharding import shard_count
from vlmfair.models.readiness import needs_legacy_environment, unready_models
from vlmfair.models.weights import remembered_digests
from vlmfair.papers.gras.artefacts import LIST_FILES, WITH_IMAGES, stems
from vlmfair.papers.gras.questions import load_traits, select_traits
from vlmfair.provenance import code_digest
from vlmfair.sheets import load_sheets, models_by_paper


def checked_config():
    """Check all configuration files; a fault is one sentence, not a schema dump."""
    try:
        return load_sheets(config, ROOT, workflow.configfiles)
    except VlmfairError as error:
        raise WorkflowError(str(error)) from None


def authors_lists():
    """The two selection lists of GRAS's authors that the full-size run is given."""
    folder = Path(config["gras_selection"])
    return {name: str(folder / file) for name, file in LIST_FILES.items()}


def settle_full_size():
    """Set what follows from the two keys of the full-size run: its suite and the folders in it."""
    if config["suite"] != "full_size":
        raise WorkflowError(
            "gras_selection is for the full-size run, which has a config of its own. "
            f"Leave out the one with suite: {config['suite']}."
        )
    for path in authors_lists().values():
        if not os.path.isfile(path):
            raise WorkflowError(
                f"{path}: the selection list is missing. Fetch it from "
                f"https://github.com/shaivimalik/gras_bias_bench, and give its folder as "
                f"--config gras_selection=DIR."
            )
    if config["full_size_images"]:
        config["suite"] = f"full_size_{config['full_size_images']}"
        config["gras"]["selection_sha256"] = {name: "" for name in LIST_FILES}
    folder = f"results/{config['suite']}"
    for name, settings in config["datasets"].items():
        settings["raw"] = f"{folder}/raw/{name}"
    config["gras"]["selection_lists"] = f"{folder}/raw/gras"
    config["answer_store"] = f"{folder}/answers"


def authors_lists_are_missing(wildcards):
    """The full-size run cannot start without the authors' lists."""
    raise WorkflowError(
        "gras_full_size needs the folder of the authors' two selection lists, from "
        "https://github.com/shaivimalik/gras_bias_bench. "
        "Run: snakemake --cores all gras_full_size --config gras_selection=DIR."
    )


fill_in(config, read_yaml(ROOT / "config/config.yaml"))
settle_paths(config)
if config.get("gras_selection"):
    settle_full_size()

SUITE_FOLDER = f"results/{config.get('suite', 'demo')}"
SHEETS = checked_config()
MODELS, DATASETS, ARTEFACTS = SHEETS.models, SHEETS.datasets, SHEETS.artefacts
# The datasets whose images the questions of a paper, or of one of its experiments, show.
IMAGES_OF = {"gras": tuple(LIST_FILES)}
# What is built, and what reports call it.
PAPERS = {"gras": "GRAS", "lvlm_fairness": "Fairness of LVLMs"}
# What a paper adds to the general helper functions below, by its name: the files of an artefact, the metrics beside those
# of its models, the inference jobs of an experiment and model, the contexts that these read, and the drawn images there.
STEMS_OF = {"gras": lambda stem: stems(stem, config["gras"]["models"], asked_traits())}
MORE_METRICS_OF = {}
JOBS_OF = {}
CONTEXTS_OF = {}
DRAWN_IMAGES_OF = {}


@functools.cache
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
    if raw_files_are_drawn():
        return [config["datasets"][wildcards.dataset]["raw"]]
    return retrieved_before(wildcards.dataset)


def drawn_raw_folders(asked):
    """The raw folders that the images of a paper or experiment lie in, where they are drawn.

    Deleted ones come back before a job opens an image. Ancient, because it is the digests in the
    samples that say whether an image has changed.
    """
    folders = [config["datasets"][name]["raw"] for name in IMAGES_OF.get(asked, ())]
    return [ancient(folder) for folder in folders] if raw_files_are_drawn() else []


def asked_raw_folders(wildcards):
    """The drawn raw folders that the questions of a paper or experiment need."""
    return drawn_raw_folders(wildcards.get("experiment", wildcards.paper))


def shown_raw_folders(artefact):
    """The drawn raw folders that a figure needs, none where it shows no image."""
    asked, showing = SHOWN_IMAGES[artefact.paper]
    return drawn_raw_folders(asked) if artefact.stem in showing else []


def dataset_advice(wildcards):
    """How to get a dataset's raw files, for the error of a parser that does not find them."""
    entry = DATASETS[wildcards.dataset]
    return f"{advised_command(wildcards.dataset, entry)}{entry['get']}"


def advised_command(source, entry):
    """The command that downloads a source, or what of it may be downloaded."""
    if not entry.get("files"):
        return ""
    part = "what of it is not gated" if entry.get("by_hand") else "it"
    command = f"snakemake --cores all retrieve_{source} --configfile"
    return f"Run {command} <the config of this run> for {part}. By hand: "


def selection_lists(wildcards):
    """The two published lists, as inputs where they exist or will be drawn."""
    if config["gras"]["selection"] != "published":
        return []
    folder = Path(config["gras"]["selection_lists"])
    files = [str(folder / name) for name in LIST_FILES.values()]
    if config["retrieve"] and not raw_files_are_drawn():
        return retrieved_before(GRAS_LISTS)
    found = all(os.path.exists(name) for name in files)
    return files if found or raw_files_are_drawn() else []


def listed_images(wildcards):
    """The list of the images of a dataset that are needed, where a paper publishes one."""
    published = config["gras"]["selection"] == "published"
    if not published or wildcards.dataset not in LIST_FILES:
        return ""
    return str(Path(config["gras"]["selection_lists"]) / LIST_FILES[wildcards.dataset])


def listed_images_file(wildcards):
    """That list as an input where it exists or will be drawn; else the parser says how to get it."""
    path = listed_images(wildcards)
    if path and config["retrieve"] and not raw_files_are_drawn():
        return retrieved_before(GRAS_LISTS)
    return [path] if path and (os.path.exists(path) or raw_files_are_drawn()) else []


def list_advice(wildcards):
    """How to get that list, for the error of a parser that does not find it."""
    advice = DATASETS[wildcards.dataset].get("get_list", "")
    return f"{advised_command(GRAS_LISTS, LISTS[GRAS_LISTS])}{advice}" if advice else ""


def dataset_options(wildcards):
    """The named rules by which a dataset is read."""
    settings = config["datasets"][wildcards.dataset]
    known = ("policy", "tone_rule", "version", "crowd", "seed")
    return as_param({key: str(settings[key]) for key in known if key in settings})


def drawn_sizes(wildcards):
    """How many images of each group a drawn dataset has."""
    settings = config["datasets"][wildcards.dataset]
    if "drawn_per_cell" in settings:
        return as_param({"per_cell": settings["drawn_per_cell"]})
    return as_param({key: config["gras"][key] for key in ("per_cell", "per_tone")})


def evaluation_results(wildcards):
    """The published result files, so that another download of them is audited again."""
    folder = config["gras_evaluation_results"]
    return sorted(map(str, Path(folder).glob("*.csv"))) if folder else []


def paper_temperatures(wildcards):
    """The temperatures of the paper whose questions are asked; none where nothing is scored."""
    return as_param(config[wildcards.paper].get("temperatures", []))


def model_entry(wildcards):
    """One model's entry, for the steps that do not read its weights."""
    return as_param(MODELS[wildcards.model])


def model_settings(wildcards):
    """One model's entry and, for weights that lie in a folder, their content."""
    warn_of_unready_models()
    entry = MODELS[wildcards.model]
    folder = ROOT / entry["path"] if entry.get("path") else None
    if folder is None or not folder.is_dir():
        return model_entry(wildcards)
    return model_entry(wildcards), weights_in(folder)


def weights_in(folder):
    """Name and digest of each file of a folder that decides what a model or encoder says."""
    return remembered_digests(folder, Path(".snakemake/vlmfair_model_files.json"))


def files_of_encoder(path):
    """Name and digest of each file of an encoder, in its folder and those below."""
    files = Path(path)
    folders = [files, *filter(Path.is_dir, files.rglob("*"))] if files.is_dir() else []
    return tuple(entry for folder in sorted(folders) for entry in weights_in(folder))


def inference_environment(wildcards):
    """The conda environment of a model: those that bring their own code need an older transformers."""
    family = SHEETS.registry[wildcards.model].family
    name = "inference-legacy" if needs_legacy_environment(family) else "inference"
    return f"../../envs/{name}.yaml"


def gpus_of_model(wildcards):
    """How many GPUs an inference job leases: none where the config wants none, else those that it
    wants or that the model's entry says it needs, whichever is more."""
    wanted, entry = config["inference"]["gpus"], MODELS[wildcards.model]
    local = entry.get("backend") != "openai"
    return max(wanted, entry.get("gpus", 1)) if wanted and local else 0


@functools.cache
def warn_of_unready_models():
    """Say in a dry-run, which is for planning, what would stop the run itself."""
    names = itertools.chain.from_iterable(models_by_paper(config).values())
    sentence = unready_models(list(dict.fromkeys(names)), SHEETS.registry)
    if sentence and (workflow.dryrun or workflow.executor_plugin is None):
        logger.warning(f"{sentence} Until then only a dry-run works.")


def stop_at_unready_models():
    """Stop before the first job when models that cannot be asked are to be asked."""
    # Another workflow that imports these rules puts a prefix before their names.
    asking = ("infer", "infer_experiment")
    jobs = [
        job for job in workflow.dag.needrun_jobs() if job.rule.name.endswith(asking)
    ]
    names = {job.wildcards.get("model") for job in jobs} & set(MODELS)
    sentence = unready_models(sorted(names), SHEETS.registry)
    if sentence:
        raise WorkflowError(sentence)


onstart:
    stop_at_unready_models()
    stop_at_missing_encoders()
    stop_at_unready_generators()


def gras_image_count():
    """How many images the selection announces."""
    if config["gras_selection"] and config["full_size_images"]:
        return config["full_size_images"]
    return 70 * config["gras"]["per_cell"] + 10 * config["gras"]["per_tone"]


def suite_folder(wildcards):
    """Where a suite's logs and benchmarks lie, which are no outputs that a rule could ask for."""
    return SUITE_FOLDER


def speed_sample():
    """Images of the sample on which the full-size run is compared with the plain form."""
    return min(20, max(2, gras_image_count() // 20))


def gras_shard_count():
    """How many inference jobs one model has; it follows from the number of images."""
    return shard_count(gras_image_count(), config["gras"]["images_per_shard"])


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
    files = []
    for artefact in built_artefacts(ARTEFACTS, paper):
        if kind not in (None, artefact.kind):
            continue
        for stem in artefact_stems(artefact):
            files += [
                f"<suite>/{artefact.folder}/{stem}.{suffix}"
                for suffix in artefact.suffixes
            ]
    return files


def tex_files(wildcards):
    """The tables of a paper as LaTeX, in the paper's order."""
    files = artefact_files(wildcards.paper, "table")
    return [file for file in files if file.endswith(".tex")]


def title_of_tables(wildcards):
    """What stands above all tables of a paper."""
    return f"{PAPERS[wildcards.paper]}: tables of the suite {config['suite']}"


def artefact_stems(artefact):
    """The names of an artefact's files: one, but for families of one per model, or model and page."""
    stems_of = STEMS_OF.get(artefact.paper, lambda stem: [stem])
    return stems_of(artefact.stem)


def metrics_of_paper(wildcards):
    """The metrics of each model of a paper, and of its data where these are metrics too."""
    paper = wildcards.paper
    names = [*MORE_METRICS_OF.get(paper, ()), *config[paper]["models"]]
    return [f"<suite>/{paper}/metrics/{name}.parquet" for name in names]


def experiment_shards(wildcards):
    """The responses of every shard of one model in one experiment."""
    paper, experiment, model = wildcards.paper, wildcards.experiment, wildcards.model
    folder = f"<suite>/{paper}/responses/{experiment}/{model}"
    count = JOBS_OF[paper](experiment, model)
    return [f"{folder}/{shard}.parquet" for shard in range(count)]


def asked_contexts(wildcards):
    """The demonstrations that the questions of an experiment refer to; none in most papers."""
    contexts_of = CONTEXTS_OF.get(wildcards.paper, lambda experiment, model: [])
    return contexts_of(wildcards.experiment, wildcards.model)


def asked_drawn_images(wildcards):
    """The folders of drawn images that the questions of an experiment show; none in most papers."""
    folders_of = DRAWN_IMAGES_OF.get(wildcards.paper, lambda experiment, model: [])
    return folders_of(wildcards.experiment, wildcards.model)


def workflow_artefacts():
    """The tables and figures that rules make, of all papers."""
    return [entry for entry in built_artefacts(ARTEFACTS) if entry.paper in PAPERS]


def single_artefacts(kind):
    """The tables or figures of all papers that are one file each."""
    return [
        entry
        for entry in workflow_artefacts()
        if entry.kind == kind and not entry.family
    ]


def artefact_families(kind):
    """The tables of all papers that are one file per model, or figures: one per model and page."""
    return [
        entry for entry in workflow_artefacts() if entry.kind == kind and entry.family
    ]


# What every table and figure of GRAS is drawn from.
GRAS_FACTS = {
    "metrics": "<suite>/gras/metrics.parquet",
    "images": "<suite>/gras/images.parquet",
    "selection": "<suite>/gras/selection.csv",
    "traits": "<resources>/words/gras_traits.csv",
    "prompts": "<resources>/prompts/gras.yaml",
    "manifests": [
        f"<suite>/gras/responses/{model}.manifest.json"
        for model in config["gras"]["models"]
    ],
}


def model_titles(models):
    """How tables and figures call models."""
    return as_param({model: MODELS[model].get("title", model) for model in models})


def gras_facts_params():
    """The settings that tables and figures of GRAS show."""
    return {
        "models_file": config["models_file"],
        "models": as_param(config["gras"]["models"]),
        "titles": model_titles(config["gras"]["models"]),
        "chosen_traits": as_param(config["gras"]["traits"]),
        "style": config["gras"]["prompt_style"],
        "alpha": config["gras"]["alpha"],
    }


def caption_files():
    """The captions of what is built, each in a file of its own."""
    return [own_path(entry.caption) for entry in workflow_artefacts()]


def report_params(paper):
    """What the report says first about a paper goes by these settings."""
    shown = FACTS_PARAMS[paper]
    wanted = ("models", "titles", "table_judge", "invalid", "direct", "choice")
    wanted += ("shots", "tasks", "judge")
    return tuple((key, shown[key]) for key in wanted if key in shown)


CONFIG_TEXT = json.dumps(config, indent=2, sort_keys=True)
