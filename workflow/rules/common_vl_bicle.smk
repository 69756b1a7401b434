"""The helper functions of the rules of vl_bicle."""

from vlmfair.models.readiness import most_images_of
from vlmfair.papers.vl_bicle import artefacts as vl_bicle_artefacts
from vlmfair.papers.vl_bicle import settings as bicle
from vlmfair.papers.vl_bicle.tasks import TASKS, VQA

BICLE = config["vl_bicle"]
BICLE_FOLDER = "<suite>/vl_bicle"
BICLE_TASKS = [name for name in TASKS if name in BICLE["tasks"]]
BICLE_DATASETS = list(dict.fromkeys(TASKS[name].samples for name in BICLE_TASKS))
# What every step that turns samples into questions reads.
BICLE_WORDING = {
    "prompts": "<resources>/prompts/vl_bicle.yaml",
    "words": "<resources>/words/gender_words.yaml",
}
IMAGES_OF |= {name: (task.samples,) for name, task in TASKS.items()}
SHOWN_IMAGES["vl_bicle"] = ("coco_bias", vl_bicle_artefacts.WITH_IMAGES)

try:
    bicle.check_settings(BICLE)
except VlmfairError as error:
    raise WorkflowError(str(error)) from None


def samples_of_task(wildcards):
    """The samples of the dataset that a task asks about."""
    return f"<suite>/samples/{TASKS[wildcards.experiment].samples}/samples.parquet"


def samples_of_tasks():
    """The samples of every task, in the order of the tasks."""
    return [
        f"<suite>/samples/{TASKS[name].samples}/samples.parquet" for name in BICLE_TASKS
    ]


def drawn_image_tables(wildcards):
    """The tables of drawn images that a task's demonstrations are shared with; mostly none."""
    is_drawn_for = wildcards.experiment == bicle.RETRIEVED_TASK
    return drawn_files("images.parquet") if is_drawn_for else []


def context_kinds(task, model=None):
    """The files of demonstrations of a task, of those that a model is asked with or of all."""
    kinds = ["sampled"]
    if task == bicle.RETRIEVED_TASK and BICLE["retrieval"]:
        kinds.append("retrieved")
    models = BICLE["models"] if model is None else [model]
    if any(bicle.sees_drawn_images(task, name, BICLE) for name in models):
        kinds.append("synthetic")
    return kinds


def context_files(task, model=None):
    """The demonstrations of a task."""
    folder = f"{BICLE_FOLDER}/contexts/{task}"
    return [f"{folder}/{kind}.parquet" for kind in context_kinds(task, model)]


def contexts_of_questions(experiment, model):
    """The demonstrations that the questions to a model refer to; the judge's are its instruction."""
    if experiment == bicle.VERDICTS:
        return [f"{BICLE_FOLDER}/contexts/verdicts.{model}.parquet"]
    return context_files(experiment, model)


def contexts_of_task(wildcards):
    """The demonstrations that a model is asked a task with."""
    return context_files(wildcards.experiment, wildcards.model)


def drawn_demonstrations(experiment, model):
    """The folders of drawn images that the questions of an experiment show."""
    if not bicle.sees_drawn_images(experiment, model, BICLE):
        return []
    return [ancient(folder) for folder in drawn_files("images")]


def announced_queries(task):
    """About how many images of a task models are asked about."""
    return DATASETS[TASKS[task].samples]["queries"][task]


def bicle_chunks(wildcards):
    """How many jobs the queries of one setting and run are spread over."""
    return bicle.chunk_count(announced_queries(wildcards.experiment), BICLE)


def verdict_shard_count():
    """How many jobs the judge of visual questions has, for as many answers as there can be."""
    answers = sum(
        bicle.most_answers(task, model, announced_queries(task), BICLE)
        for task, model in bicle.questions_asked(BICLE)
    )
    return shard_count(answers, BICLE["verdicts_per_shard"])


def bicle_shard_count(experiment, model):
    """How many inference jobs a model has in an experiment."""
    if experiment == bicle.VERDICTS:
        return verdict_shard_count()
    return bicle.task_shard_count(
        experiment, model, announced_queries(experiment), BICLE
    )


def answers_of_questions(kind):
    """The questions or answers, as `kind` says, of all models on VisualCoT."""
    return [
        f"{BICLE_FOLDER}/{kind}/{task}/{model}.parquet"
        for task, model in bicle.questions_asked(BICLE)
    ]


def verdicts_of_task(wildcards):
    """What a language model was asked about answers and said, where it is the judge of a task."""
    if BICLE["judge"] == bicle.LEXICAL or TASKS[wildcards.experiment].experiment != VQA:
        return {}
    file = f"{bicle.VERDICTS}/{BICLE['judge']}.parquet"
    return {
        "asked": f"{BICLE_FOLDER}/requests/{file}",
        "verdicts": f"{BICLE_FOLDER}/responses/{file}",
    }


def raw_folders_of_captions(wildcards):
    """The images that captions are compared with; other answers need none."""
    has_captions = TASKS[wildcards.experiment].has_captions
    return drawn_raw_folders(wildcards.experiment) if has_captions else []


def clip_settings(wildcards):
    """The CLIP of scores and retrieval and the content of its files, for what needs it."""
    return clip_of_run() if TASKS[wildcards.experiment].has_captions else ((), ())


def clip_memory(wildcards, attempt):
    """Memory of a job: as of inference where CLIP is loaded, as of a table where it is not."""
    has_captions = TASKS[wildcards.experiment].has_captions
    needed = config["inference"]["mem_mb"] if has_captions else 3000
    return growing(needed)(wildcards, attempt)


def most_images(wildcards):
    """How many images a prompt of a model can hold; 0 where only the context limits it."""
    entry = MODELS[wildcards.model]
    return most_images_of(entry.get("family", "")) or 0


def judgements_on_tasks(wildcards):
    """The judgements of a model, one file for each task that it is asked."""
    return [
        f"{BICLE_FOLDER}/judgements/{task}/{wildcards.model}.parquet"
        for task in bicle.tasks_of_model(wildcards.model, BICLE)
    ]


def skipped_cells(wildcards):
    """The cells that a model was not asked, one file for each task."""
    return [
        f"{BICLE_FOLDER}/requests/{task}/{wildcards.model}.skipped.json"
        for task in bicle.tasks_of_model(wildcards.model, BICLE)
    ]


def clip_backbone():
    """How tables name the CLIP of a run."""
    return BICLE["encoder"].get("title") or Path(BICLE["encoder"]["model"]).name


# What every table and figure of vl_bicle is made from.
VL_BICLE_FACTS = {
    "metrics": f"{BICLE_FOLDER}/metrics.parquet",
    **BICLE_WORDING,
    "claims": f"{BICLE_FOLDER}/claims.csv",
    "published": "<resources>/published/vl_bicle.csv",
    "sequences": [
        file
        for file in context_files("coco_bias")
        if "coco_bias" in BICLE_TASKS and "synthetic" not in file
    ],
    "samples": "<suite>/samples/coco_bias/samples.parquet",
    "drawn": drawn_files("images.parquet"),
    "funnels": [f"<suite>/samples/{name}/funnel.csv" for name in BICLE_DATASETS],
    "datasets": config["datasets_file"],
}
VL_BICLE_MANIFESTS = [
    f"{BICLE_FOLDER}/responses/{task}/{model}.manifest.json"
    for model in BICLE["models"]
    for task in bicle.tasks_of_model(model, BICLE)
]


def vl_bicle_facts_params():
    """The settings that tables and figures of vl_bicle show."""
    return {
        "models": as_param(BICLE["models"]),
        "titles": model_titles(BICLE["models"]),
        "vqa_models": as_param(BICLE["question_models"]),
        "synthetic_models": as_param(BICLE["synthesis"]["models"]),
        "claim_models": as_param(BICLE["claim_models"]),
        "sources": tuple(GENERATORS),
        "source_titles": tuple(
            (name, generator.title or name) for name, generator in GENERATORS.items()
        ),
        "shots": as_param(BICLE["shots"]),
        "runs": BICLE["runs"],
        "retrieval": as_param(BICLE["retrieval"]),
        "tasks": tuple(BICLE_TASKS),
        "judge": BICLE["judge"],
        "clip_backbone": clip_backbone(),
        "word_list": BICLE["words"],
        "max_new_tokens": as_param(BICLE["max_new_tokens"]),
        "alpha": BICLE["alpha"],
    }


PAPERS["vl_bicle"] = "VL-BICLE"
FACTS["vl_bicle"] = VL_BICLE_FACTS
FACTS_PARAMS["vl_bicle"] = vl_bicle_facts_params()
STEMS_OF["vl_bicle"] = lambda stem: vl_bicle_artefacts.stems(stem, BICLE)
MORE_METRICS_OF["vl_bicle"] = ["data", *(["synthesis"] if GENERATORS else [])]
JOBS_OF["vl_bicle"] = bicle_shard_count
CONTEXTS_OF["vl_bicle"] = contexts_of_questions
DRAWN_IMAGES_OF["vl_bicle"] = drawn_demonstrations
