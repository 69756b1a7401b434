"""Tables 1 and 5: the images of each dataset and split, and the words that tell a gender."""

from __future__ import annotations

import pandas as pd

from vlmfair.errors import ContractError
from vlmfair.papers.vl_bicle.study import DATASET_NAMES, Study
from vlmfair.papers.vl_bicle.tasks import (
    ALL,
    CAPTIONING,
    FEMALE,
    MALE,
    PAPER,
    POOL,
    PRONOUN,
    QUERIES,
    TASKS,
    VQA,
)
from vlmfair.render.numbers import MISSING, format_count, format_number
from vlmfair.render.tables import Column, Table

_TASK_NAMES = {PRONOUN: "Pronoun prediction", CAPTIONING: "Captioning", VQA: "Visual questions"}
_SPLITS = {POOL: "Demonstration pool", QUERIES: "Queries"}
_ORIGIN = {
    "recommended": ": the lists of the paper’s two references joined, both genders with the same "
    "parts",
}
_PARTS = {"singular": "singular", "plural": "plural", "pronoun": "pronouns"}


def build_images(metrics: pd.DataFrame, study: Study) -> Table:
    """Table 1: images of each dataset in the pool of demonstrations and among the queries."""
    own = metrics[(metrics["paper"] == PAPER) & (metrics["experiment"] == "data")]
    images = own[own["metric"] == "images"]
    if images.empty:
        raise ContractError(
            "the metrics hold no numbers of images. Run the step that measures the data again."
        )
    counts = images.set_index(["dataset", "item", "group"])["value"].to_dict()
    experiments = {task.dataset: task.experiment for task in TASKS.values()}
    datasets = [name for name in DATASET_NAMES if (name, POOL, ALL) in counts]
    rows = tuple(
        (
            DATASET_NAMES[dataset],
            _TASK_NAMES[experiments[dataset]],
            *(
                text
                for split in _SPLITS
                for text in (
                    *(format_count(counts.get((dataset, split, g))) for g in (MALE, FEMALE, ALL)),
                    _share(
                        counts.get((dataset, split, MALE), 0), counts.get((dataset, split, ALL), 0)
                    ),
                )
            ),
        )
        for dataset in datasets
    )
    left_out = own[own["metric"] == "left_out"]
    shown = pd.concat([images, left_out])
    return Table(
        title="Images of each dataset and split",
        data=shown[["dataset", "item", "metric", "setting", "group", "value"]].rename(
            columns={"item": "split", "setting": "reason", "value": "images"}
        ),
        columns=(
            Column("Dataset", align="left"),
            Column("Task", align="left"),
            *(
                Column(label, name)
                for name in _SPLITS.values()
                for label in ("Male", "Female", "All", "Male (%)")
            ),
        ),
        rows=rows,
        notes=(
            "Demonstrations are taken from the pool, which has the distribution of the data. "
            "Queries have as many men as women; those of VisoGender are the rest, whatever their "
            "number.",
            "The direct questions of VisualCoT and those with a chain of thought are about the "
            "same images.",
            _left_out_note(left_out),
        ),
    )


def _share(men: float, everybody: float) -> str:
    return format_number(100 * men / everybody, 1) if everybody else MISSING


def _left_out_note(left_out: pd.DataFrame) -> str:
    if left_out.empty:
        return "No sample of the splits was left out."
    reasons = left_out.groupby("setting")["value"].sum()
    named = ", ".join(
        f"{format_count(count)} ({str(reason).replace('_', ' ')})"
        for reason, count in reasons.items()
    )
    return f"Left out of the splits, because a task cannot use them: {named}."


def build_words(metrics: pd.DataFrame, study: Study) -> Table:
    """Table 5: the words that tell a gender, and those for several people."""
    if not study.word_lists:
        raise ContractError(
            "the study has no lists of words. Give the rule resources/words/gender_words.yaml."
        )
    names = {MALE: "Masculine", FEMALE: "Feminine"}
    parts = [
        (names[listed.gender], _PARTS[part], words)
        for listed in study.word_lists
        for part, words in listed.words.items()
    ]
    parts.append(("Several people", "plural and collective", study.collective))
    parts.append(("Not counted", "phrases", study.phrases))
    return Table(
        title="Words that tell a gender or a number",
        data=pd.DataFrame(
            [(kind, part, word) for kind, part, words in parts for word in words],
            columns=["list", "part", "word"],
        ),
        columns=(
            Column("List", align="left", width=0.9),
            Column("Part", align="left", width=0.9),
            Column("Words", align="left", width=3.4),
            Column("Number"),
        ),
        rows=tuple(
            (kind, part, ", ".join(words), format_count(len(words))) for kind, part, words in parts
        ),
        notes=(
            "The paper’s own list is not part of its text. This is the list "
            f"“{study.word_list}” (vl_bicle.words){_ORIGIN.get(study.word_list, '')}.",
            "A text is put in lower case; a word counts when it stands alone, also with ’s. "
            "Phrases that are not counted are taken out first. Plurals of both genders and the "
            "words for several people leave an image of DCI out.",
        ),
        stubs=2,
    )
