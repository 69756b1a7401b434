"""The helper functions of the rules that check which datasets are there."""

from types import SimpleNamespace

from vlmfair.folder_state import folder_state

# The datasets that the questions of a paper that is built show.
ASKED_DATASETS = sorted({name for names in IMAGES_OF.values() for name in names})


def checked_datasets():
    """The datasets of the config, in the order of their sheet."""
    return [name for name in DATASETS if name in config["datasets"]]


def missing_part(dataset):
    """What a dataset lacks before it can be read: `raw`, `list`, or nothing."""
    wildcards = SimpleNamespace(dataset=dataset)
    if raw_files_are_drawn():
        return ""
    if not os.path.isdir(config["datasets"][dataset]["raw"]):
        return "raw"
    path = listed_images(wildcards)
    return "list" if path and not os.path.exists(path) else ""


def drawn_files_to_check():
    """The drawn raw folders and lists of the datasets that are asked for."""
    if not raw_files_are_drawn():
        return []
    asked = [name for name in checked_datasets() if name in ASKED_DATASETS]
    lists = [listed_images(SimpleNamespace(dataset=name)) for name in asked]
    return [config["datasets"][name]["raw"] for name in asked] + [
        path for path in lists if path
    ]


def dataset_to_check(name):
    """A dataset's name, raw folder, what it lacks and how to get that, list, and rules."""
    wildcards = SimpleNamespace(dataset=name)
    lacks = missing_part(name)
    raw, listed = config["datasets"][name]["raw"], listed_images(wildcards)
    advice = dataset_advice(wildcards)
    if listed and not raw_files_are_drawn() and not os.path.exists(listed):
        # Without the images, both are to be fetched.
        alone = f"{listed} is missing. {list_advice(wildcards)}"
        advice = f"{advice} {alone}" if lacks == "raw" else alone
    return name, raw, lacks, advice, listed, dataset_options(wildcards)


def datasets_to_check():
    """The same of each dataset of the config."""
    return tuple(dataset_to_check(name) for name in checked_datasets())


def state_of_raw_files(wildcards):
    """What lies in the raw folders that were downloaded, so that a check looks anew when it changes."""
    if raw_files_are_drawn():
        return ()
    folders = [config["datasets"][name]["raw"] for name in checked_datasets()]
    return tuple(map(folder_state, [*folders, config["gras"]["selection_lists"]]))
