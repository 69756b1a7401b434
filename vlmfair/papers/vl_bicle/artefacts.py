"""Which tables and figures a run has, and the names of their files; standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vlmfair.papers.vl_bicle.settings import RETRIEVED_TASK, sources
from vlmfair.papers.vl_bicle.tasks import BALANCED_POOL, TASKS, VQA

# The tables of the appendix, one per model, with the task that they are of.
MODEL_TABLES = {
    "table_38-43": "visogender_oo",
    "table_44-49": "visogender_op",
    "table_coco_bias": "coco_bias",
    "table_balanced_pool": "coco_bias",
    "table_dci": "dci",
    "table_visual_cot": "visual_cot",
    "table_synthetic": "coco_bias",
}
# What is about drawn images (section 5), and what shows photographs or drawn images.
OF_SYNTHESIS = (
    *("table_4", "table_synthetic", "table_drawn_images", "figure_6", "figure_synthetic"),
)
WITH_IMAGES = ("figure_1", "figure_synthetic")
# What is about captions of COCOBias, and what about visual questions.
OF_CAPTIONS = ("table_3", "figure_1", "figure_4")
OF_QUESTIONS = ("figure_5",)


def stems(artefact: str, settings: Mapping[str, Any]) -> list[str]:
    """Return the file names, without ending, of a table or figure of a run.

    `settings` is the section vl_bicle of the config. One, or one per model that was asked for a
    table of the appendix; none for what is about a task, a pool or images that the run lacks.
    """
    if artefact in OF_SYNTHESIS and not sources(settings):
        return []
    experiments = {TASKS[name].experiment for name in settings["tasks"]}
    has_questions = VQA in experiments and bool(settings["question_models"])
    lacking = (
        (artefact in OF_CAPTIONS and RETRIEVED_TASK not in settings["tasks"])
        or (artefact == "figure_4" and not settings["retrieval"])
        or (artefact in OF_QUESTIONS and not has_questions)
    )
    if lacking:
        return []
    if artefact not in MODEL_TABLES:
        return [artefact]
    return [f"{artefact}_{model}" for model in models_of_table(artefact, settings)]


def models_of_table(table_id: str, settings: Mapping[str, Any]) -> list[str]:
    """Return the models that have a table of the appendix, in their order."""
    dataset = MODEL_TABLES[table_id]
    tasks = [TASKS[name] for name in settings["tasks"] if TASKS[name].dataset == dataset]
    balanced = any(name.endswith(BALANCED_POOL) for name in settings["retrieval"])
    if not tasks or (table_id == "table_balanced_pool" and not balanced):
        return []
    asked: list[str] = settings["models"]
    if tasks[0].experiment == VQA:
        asked = settings["question_models"]
    elif table_id == "table_synthetic":
        asked = settings["synthesis"]["models"]
    return [model for model in settings["models"] if model in asked]
