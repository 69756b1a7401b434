"""The helper functions of the rules that check which datasets are there."""

from types import SimpleNamespace

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


def readable_datasets():
    """The datasets that are read for a check: those that are there; of drawn ones, those asked for."""
    if raw_files_are_drawn():
        return [name for name in checked_datasets() if name in ASKED_DATASETS]
    return [name for name in checked_datasets() if not missing_part(name)]


def files_of_readable(stem):
    """A table of each dataset that is read for a check."""
    return [f"<suite>/samples/{name}/{stem}.parquet" for name in readable_datasets()]


def datasets_to_check():
    """Each dataset of the config: name, raw folder, what it lacks, and the rules it is read by."""
    return tuple(
        (
            name,
            config["datasets"][name]["raw"],
            missing_part(name),
            dataset_options(SimpleNamespace(dataset=name)),
        )
        for name in checked_datasets()
    )
