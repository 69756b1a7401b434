"""The helper functions of the rules that plan what a run costs."""

from vlmfair.papers.lvlm_fairness.settings import GENERATION

# The sections of the config that decide what is asked.
COST_SECTIONS = ("gras", "lvlm_fairness", "vl_bicle", "datasets", "inference", "cost")


def announced_numbers():
    """How many images each paper asks about, as the selection or the sheet of datasets announces them."""
    queries = tuple((task, announced_queries(task)) for task in BICLE_TASKS)
    cells = (
        ("fairface", 70 * config["gras"]["per_cell"]),
        ("ai_face", 10 * config["gras"]["per_tone"]),
    )
    faces = tuple((name, announced_images(name)) for name in ("facet", "utkface"))
    return cells, faces, queries


def samples_to_count():
    """The samples that a plan rests on instead of announced numbers, by dataset, and GRAS's images.

    Drawn ones are prepared for it; others are taken where they are prepared already.
    """
    names = ("facet", "utkface", *BICLE_DATASETS)
    files = {name: f"{SUITE_FOLDER}/samples/{name}/samples.parquet" for name in names}
    files["gras"] = f"{SUITE_FOLDER}/gras/images.parquet"
    return tuple(
        (name, file)
        for name, file in files.items()
        if raw_files_are_drawn() or os.path.exists(file)
    )


def drawn_samples():
    """The samples that have to be there before a plan: none of a download, which may never come."""
    return [file for _, file in samples_to_count()] if raw_files_are_drawn() else []


def announced_drawings():
    """How many captions the generators of images draw, as announced, and in how many jobs each."""
    return DATASETS["coco_bias"]["pool"], drawing_shard_count()


def inference_jobs():
    """The number of inference jobs of each paper and model."""
    jobs = {("gras", name): gras_shard_count() for name in config["gras"]["models"]}
    for name in LVLM["models"]:
        jobs["lvlm_fairness", name] = sum(map(experiment_shard_count, DATASET_OF))
    if LVLM["generator"]:
        key = ("lvlm_fairness", LVLM["generator"])
        jobs[key] = jobs.get(key, 0) + experiment_shard_count(GENERATION)
    for name in BICLE["models"]:
        tasks = bicle.tasks_of_model(name, BICLE)
        jobs["vl_bicle", name] = sum(bicle_shard_count(task, name) for task in tasks)
    if BICLE["judge"] != bicle.LEXICAL:
        key = ("vl_bicle", BICLE["judge"])
        jobs[key] = jobs.get(key, 0) + verdict_shard_count()
    return tuple((*key, number) for key, number in jobs.items())
