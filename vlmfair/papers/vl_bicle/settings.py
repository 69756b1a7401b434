"""What the settings of this paper imply: who is asked what, and how many jobs that makes.

Standard library only: the Snakefile imports it at every parse.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vlmfair.errors import ConfigError
from vlmfair.inference.sharding import shard_count
from vlmfair.papers.vl_bicle.tasks import SAMPLED, TASKS, VQA, runs_of, task_named

# The dataset with captions of its own and a pool that is large enough to retrieve from (section 4).
RETRIEVED_TASK = "coco_bias"
# What is asked of a judge that is a language model lies beside the tasks.
VERDICTS = "verdicts"
LEXICAL = "lexical"
# Files of metrics that belong to no model of the sheet.
_TAKEN = ("data", "synthesis")


def check_settings(settings: Mapping[str, Any]) -> None:
    """Check the section vl_bicle of a config that its schema has passed.

    Raises ConfigError when shots do not begin at 0 or are odd, a model is listed that is not asked,
    or captions have no encoder.
    """
    shots = settings["shots"]
    if 0 not in shots or any(number % 2 for number in shots) or max(shots) == 0:
        raise ConfigError(
            f"config: vl_bicle.shots is {list(shots)}. Write 0, which shifts are measured from, "
            f"and even numbers, half of which are women in BS: [0, 2, 4, 6, 8]."
        )
    listed = {key: settings[key] for key in ("question_models", "claim_models")}
    if sources(settings):
        listed["synthesis.models"] = settings["synthesis"]["models"]
    for key, names in listed.items():
        for name in names:
            if name not in settings["models"]:
                raise ConfigError(
                    f"config: vl_bicle.{key}: {name} is not in vl_bicle.models. "
                    f"Add it there or leave it out here."
                )
    for name in settings["models"]:
        if name in _TAKEN:
            raise ConfigError(
                f"config: vl_bicle.models: the workflow calls something else {name}. "
                f"Give the model another name in the sheet of models."
            )
    captioning = [task_named(name).has_captions for name in settings["tasks"]]
    if any(captioning) and not settings["encoder"]["model"]:
        raise ConfigError(
            "config: vl_bicle.encoder: model is missing, and CLIPScore and retrieval need it. "
            "Write model: <folder of a CLIP for open_clip>."
        )
    if sources(settings) and RETRIEVED_TASK not in settings["tasks"]:
        raise ConfigError(
            f"config: vl_bicle.synthesis draws the images of {RETRIEVED_TASK}, which is not in "
            f"vl_bicle.tasks. Add it there, or write generators: {{}}."
        )


def sources(settings: Mapping[str, Any]) -> list[str]:
    """Return the names of what draws images, none where nothing does."""
    return [name for name, own in settings["synthesis"]["generators"].items() if own]


def sees_drawn_images(task: str, model: str, settings: Mapping[str, Any]) -> bool:
    """Whether a model is asked a task with drawn demonstrations, too (section 5)."""
    has = task == RETRIEVED_TASK and bool(sources(settings))
    return has and model in settings["synthesis"]["models"]


def tasks_of_model(model: str, settings: Mapping[str, Any]) -> list[str]:
    """Return the tasks that a model is asked, in the order of the paper."""
    return [
        name
        for name, task in TASKS.items()
        if name in settings["tasks"]
        and (task.experiment != VQA or model in settings["question_models"])
    ]


def models_of_task(task: str, settings: Mapping[str, Any]) -> list[str]:
    """Return the models that are asked a task."""
    return [name for name in settings["models"] if task in tasks_of_model(name, settings)]


def questions_asked(settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return each task and model of visual questions, whose answers a judge compares."""
    return [
        (task, model)
        for task in TASKS
        for model in models_of_task(task, settings)
        if TASKS[task].experiment == VQA
    ]


def group_count(task: str, model: str, settings: Mapping[str, Any]) -> int:
    """Return how many pairs of setting and run a model is asked in a task, zero shots included."""
    groups = 1 + sum(len(runs_of(name, settings["runs"])) for name in SAMPLED)
    if task == RETRIEVED_TASK:
        groups += len(settings["retrieval"])
    if sees_drawn_images(task, model, settings):
        drawn = sum(
            len(runs_of(name, settings["runs"])) for name in settings["synthesis"]["settings"]
        )
        groups += drawn * len(sources(settings))
    return groups


def chunk_count(queries: int, settings: Mapping[str, Any]) -> int:
    """Return how many jobs the queries of one setting and run are spread over."""
    return shard_count(queries, settings["queries_per_shard"])


def task_shard_count(task: str, model: str, queries: int, settings: Mapping[str, Any]) -> int:
    """Return how many inference jobs a task of a model has."""
    groups = group_count(task, model, settings)
    return shard_count(groups, settings["groups_per_shard"]) * chunk_count(queries, settings)


def most_answers(task: str, model: str, queries: int, settings: Mapping[str, Any]) -> int:
    """Return how many answers a model gives in a task when it takes every number of shots."""
    positive = sum(number > 0 for number in settings["shots"])
    return queries * (1 + (group_count(task, model, settings) - 1) * positive)


def token_limit(task: str, settings: Mapping[str, Any]) -> int:
    """Return the most tokens of an answer; pronouns are scored, which asks for none."""
    limits: Mapping[str, int] = settings["max_new_tokens"]
    return limits.get(TASKS[task].prompt, 1)
