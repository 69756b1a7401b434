"""The helper functions of the rules that download raw files."""

from vlmfair.config import read_yaml
from vlmfair.retrieval.parts import missing_files

# The two lists of images of GRAS are downloaded like a dataset.
GRAS_LISTS = "gras_lists"
LISTS = {GRAS_LISTS: read_yaml(ROOT / config["datasets_file"]).get("lists", {})["gras"]}


def sources():
    """What may be downloaded, or has to be fetched by hand: datasets and the lists of GRAS."""
    return [*config["datasets"], GRAS_LISTS]


def source_entry(source):
    """The facts about a dataset or the lists."""
    return LISTS[source] if source in LISTS else DATASETS[source]


def source_folder(source):
    """The raw folder of a dataset, or the folder of the lists."""
    if source in LISTS:
        return config["gras"]["selection_lists"]
    return config["datasets"][source]["raw"]


def source_params(wildcards):
    """The facts that a download goes by, as a text."""
    entry = source_entry(wildcards.source)
    return json.dumps({"files": entry.get("files", [])}, sort_keys=True)


def is_lost(wildcards):
    """Whether something is missing although it was downloaded once: then it is done again."""
    manifest = f"{SUITE_FOLDER}/retrieved/{wildcards.source}.json"
    folder = Path(source_folder(wildcards.source))
    return os.path.exists(manifest) and bool(
        missing_files(source_entry(wildcards.source), folder)
    )


def retrieved_files(source):
    """What says that a source was downloaded."""
    if raw_files_are_drawn():
        raise WorkflowError(
            f"The raw files of the suite {config['suite']} are drawn, and nothing is downloaded. "
            f"Run again with --configfile config/paper.yaml."
        )
    files = [f"<suite>/retrieved/{source}.json"]
    if source_entry(source).get("photographs"):
        files.append(f"<suite>/retrieved/{source}_photographs.csv")
    return files


def retrieved_before(source):
    """The same as an input of what reads raw files, where the config wants downloads."""
    return retrieved_files(source) if config["retrieve"] else []


def shown_sources(names):
    """Name, facts and folder of sources, for the list of what is there."""
    return tuple(
        (name, json.dumps(source_entry(name), sort_keys=True), source_folder(name))
        for name in names
    )
