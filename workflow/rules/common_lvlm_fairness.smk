"""The helper functions of the rules of lvlm_fairness."""

from vlmfair.papers.lvlm_fairness import artefacts as lvlm_fairness_artefacts
from vlmfair.papers.lvlm_fairness.questions import UTKFACE_PROMPTS
from vlmfair.papers.lvlm_fairness.settings import (
    BASELINES,
    DATASET_OF,
    DIRECT,
    GENERATION,
    JUDGED,
    check_settings,
    encoder_files,
    missing_encoders,
)

LVLM = config["lvlm_fairness"]
LVLM_FOLDER = "<suite>/lvlm_fairness"
# The experiments that a worked example is told from.
EXAMPLE = ("facet", "sub_questions", "rationale")
SUB_QUESTIONS = f"{LVLM_FOLDER}/rationale/sub_questions.json"
IMAGES_OF |= {experiment: (dataset,) for experiment, dataset in DATASET_OF.items()}
SHOWN_IMAGES = {
    "gras": ("gras", WITH_IMAGES),
    "lvlm_fairness": ("facet", lvlm_fairness_artefacts.WITH_IMAGES),
}

try:
    check_settings(LVLM)
except VlmfairError as error:
    raise WorkflowError(str(error)) from None


def asked_prompts(wildcards):
    """The prompts that an experiment plans; those of the rationale have names of their own."""
    facet = (DIRECT, *LVLM["choice_prompts"])
    return {"facet": facet, "utkface": UTKFACE_PROMPTS}.get(wildcards.experiment, ())


def samples_of_experiment(wildcards):
    """The samples of the dataset that an experiment asks about."""
    return f"<suite>/samples/{DATASET_OF[wildcards.experiment]}/samples.parquet"


def sub_questions_of_experiment(wildcards):
    """The sub-questions, for the experiment that asks them."""
    return [SUB_QUESTIONS] if wildcards.experiment == "sub_questions" else []


def generated_sub_questions(wildcards):
    """What a model was asked and answered about sub-questions; none where they are committed."""
    generator = LVLM["generator"]
    if not generator:
        return {"committed": "<resources>/words/lvlm_sub_questions.yaml"}
    file = f"{GENERATION}/{generator}.parquet"
    return {
        "requests": f"{LVLM_FOLDER}/requests/{file}",
        "responses": f"{LVLM_FOLDER}/responses/{file}",
    }


def announced_images(dataset):
    """How many images a dataset has for its questions, drawn or as the paper counts them."""
    facts = DATASETS[dataset]
    if not raw_files_are_drawn():
        return facts["acceptance"]["counts"]["all"]["all"]
    per_cell = config["datasets"][dataset]["drawn_per_cell"]
    return facts["drawn"]["cells"] * per_cell + facts["drawn"]["beside"]


def experiment_shard_count(experiment):
    """How many inference jobs an experiment has; it follows from the number of images."""
    if experiment == GENERATION:
        return 1
    images = announced_images(DATASET_OF[experiment])
    return shard_count(images, LVLM["images_per_shard"])


def planned_shards(wildcards):
    """The number of inference jobs that the questions of an experiment are spread over."""
    return experiment_shard_count(wildcards.get("experiment", "rationale"))


def files_of_model(kind, experiments, model="{model}"):
    """The requests or responses of a model, one file for each experiment."""
    return [f"{LVLM_FOLDER}/{kind}/{name}/{model}.parquet" for name in experiments]


def judgement_files(model="{model}", judge="{judge}", ending="parquet"):
    """What a judge makes of a model's answers, one file for each experiment that is judged."""
    folder = f"{LVLM_FOLDER}/judgements"
    return [f"{folder}/{name}/{model}/{judge}.{ending}" for name in JUDGED]


def judgements_of_model(wildcards):
    """What each reader made of a model's answers, or what a baseline says itself."""
    folder, model = f"{LVLM_FOLDER}/judgements", wildcards.model
    if model in LVLM["baselines"]:
        return [f"{folder}/facet/{model}/classifier.parquet"]
    return [file for judge in LVLM["judges"] for file in judgement_files(model, judge)]


def encoder_settings(wildcards):
    """The settings of the encoder of a judge or baseline, and the content of its files."""
    warn_of_missing_encoders()
    user = wildcards.get("judge", wildcards.get("baseline"))
    path = encoder_files(user, LVLM)
    if not path:
        return (), ()
    key = {"clip": "clip_text"}.get(user, user)
    return as_param(LVLM["encoders"][key]), files_of_encoder(path)


def encoder_memory(wildcards, attempt):
    """Memory of a job: as of inference where an encoder is loaded, as of a table where none is."""
    user = wildcards.get("judge", wildcards.get("baseline"))
    needed = config["inference"]["mem_mb"] if encoder_files(user, LVLM) else 2000
    return growing(needed)(wildcards, attempt)


@functools.cache
def warn_of_missing_encoders():
    """Say in a dry-run what would stop the run itself."""
    sentence = missing_encoders([*LVLM["judges"], *LVLM["baselines"]], LVLM, Path())
    if sentence and (workflow.dryrun or workflow.executor_plugin is None):
        logger.warning(f"{sentence} Until then only a dry-run works.")


def stop_at_missing_encoders():
    """Stop before the first job, and before models are asked, when an encoder is not there."""
    jobs = [job.wildcards for job in workflow.dag.needrun_jobs()]
    users = {job.get("judge", job.get("baseline", "")) for job in jobs}
    sentence = missing_encoders(sorted(users), LVLM, Path())
    if sentence:
        raise WorkflowError(sentence)


def lvlm_fairness_titles():
    """How tables and figures call models and baselines."""
    baselines = {name: BASELINES[name] for name in LVLM["baselines"]}
    return as_param({**dict(model_titles(LVLM["models"])), **baselines})


# What every table and figure of lvlm_fairness is made from.
LVLM_FAIRNESS_FACTS = {
    "metrics": f"{LVLM_FOLDER}/metrics.parquet",
    "prompts": "<resources>/prompts/lvlm_fairness.yaml",
    "classes": "<resources>/words/facet_classes.csv",
    "examples": [f"{LVLM_FOLDER}/examples/{model}.json" for model in LVLM["models"]],
    "sub_questions": SUB_QUESTIONS,
    "datasets": config["datasets_file"],
}
LVLM_FAIRNESS_MANIFESTS = [
    f"{LVLM_FOLDER}/responses/{experiment}/{model}.manifest.json"
    for model in LVLM["models"]
    for experiment in DATASET_OF
]


def lvlm_fairness_facts_params():
    """The settings that tables and figures of lvlm_fairness show."""
    models = as_param(LVLM["models"])
    return {
        "models": models,
        "utkface_models": models,
        "rationale_models": models,
        "baselines": as_param(LVLM["baselines"]),
        "titles": lvlm_fairness_titles(),
        "judges": as_param(LVLM["judges"]),
        "table_judge": LVLM["table_judge"],
        "invalid": LVLM["invalid"],
        "style": LVLM["prompt_style"],
        "direct": DIRECT,
        "choice": LVLM["choice_prompts"][0],
        "alpha": LVLM["alpha"],
        "small_cell": LVLM["small_cell"],
        "resample_draws": LVLM["resample_draws"],
    }


FACTS = {"gras": GRAS_FACTS, "lvlm_fairness": LVLM_FAIRNESS_FACTS}
FACTS_PARAMS = {
    "gras": gras_facts_params(),
    "lvlm_fairness": lvlm_fairness_facts_params(),
}
MORE_METRICS_OF["lvlm_fairness"] = ["data", *LVLM["baselines"]]
JOBS_OF["lvlm_fairness"] = lambda experiment, model: experiment_shard_count(experiment)
