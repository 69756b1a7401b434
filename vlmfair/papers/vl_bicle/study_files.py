"""Reads what tables and figures must know beside the metrics from the files of a run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq

from vlmfair.audit.published import Published, load_published
from vlmfair.config import read_yaml
from vlmfair.errors import ContractError
from vlmfair.papers.vl_bicle.study import (
    Demonstration,
    DemonstrationSequence,
    DrawnImage,
    Study,
    WordList,
)
from vlmfair.papers.vl_bicle.tasks import FEMALE, MALE, QUERIES, REAL
from vlmfair.papers.vl_bicle.verdicts import LEXICAL, LLM
from vlmfair.text.captions import bleu_signature
from vlmfair.text.words import PARTS

_SIDES = {MALE: "masculine", FEMALE: "feminine"}
# The first five tell one sequence from another.
_TURN = (
    *("setting", "query", "run", "shots", "image_source"),
    *("turn", "role", "text", "image", "gender"),
)
Path_ = str | os.PathLike[str]


def study_of_run(files: Any, settings: Any) -> Study:
    """Return the study of a run for a rule that makes a table or figure of it.

    `files` has the attribute words, and may have claims, sequences (files of contexts), samples
    (those of COCOBias), drawn (tables of drawn images, one per generator), published (numbers of
    the paper's text) and funnels (what is left of each dataset after each filter).
    `settings` has models and titles, and may have shots, runs, settings, retrieval, tasks,
    vqa_models, synthetic_models, claim_models, sources, source_titles, judge, clip_backbone,
    bleu_signature, alpha, word_list and max_new_tokens, as a rule's inputs and parameters do.
    Raises ContractError on a file that lacks what it should hold.
    """
    samples = _samples(getattr(files, "samples", None))
    words = read_yaml(files.words)
    word_list = getattr(settings, "word_list", None) or "recommended"
    return Study(
        models=tuple(settings.models),
        titles=dict(settings.titles),
        source_titles=dict(getattr(settings, "source_titles", None) or ()),
        bleu_signature=getattr(settings, "bleu_signature", None) or bleu_signature(()),
        max_new_tokens=dict(getattr(settings, "max_new_tokens", None) or ()),
        word_list=word_list,
        claims=_claims(getattr(files, "claims", None)),
        sequences=tuple(_sequences(_listed(getattr(files, "sequences", None)), samples)),
        funnels=_funnels(_listed(getattr(files, "funnels", None))),
        published=_published(getattr(files, "published", None)),
        drawn=_drawn(_listed(getattr(files, "drawn", None)), samples),
        word_lists=_word_lists(words, word_list, files.words),
        collective=tuple(words["plural_collective"]),
        phrases=tuple(words["false_positive_phrases"]),
        **_optional(settings),
    )


def _optional(settings: Any) -> dict[str, Any]:
    """Return the settings that were given, of those that have defaults."""
    lists = {
        name: tuple(getattr(settings, name))
        for name in (
            *("shots", "settings", "retrieval", "tasks"),
            *("vqa_models", "synthetic_models", "claim_models", "sources"),
        )
        if getattr(settings, name, None) is not None
    }
    plain = {
        name: getattr(settings, name)
        for name in ("runs", "clip_backbone", "alpha")
        if getattr(settings, name, None) is not None
    }
    judge = getattr(settings, "judge", None) or LEXICAL
    if judge != LEXICAL:
        named = judge if judge != LLM else getattr(settings, "judge_model", None)
        plain |= {"judge": LLM, "judge_model": named or ""}
    return {**lists, **plain}


def _listed(given: Path_ | Iterable[Path_] | None) -> list[Path]:
    if given is None:
        return []
    return [Path(given)] if isinstance(given, str | os.PathLike) else [Path(path) for path in given]


def _claims(path: Path_ | None) -> pd.DataFrame:
    return pd.DataFrame() if path is None else pd.read_csv(path, keep_default_na=True)


def _published(path: Path_ | None) -> tuple[Published, ...]:
    return () if path is None else load_published(path)


def _funnels(paths: list[Path]) -> dict[str, pd.DataFrame]:
    """Return the funnels by dataset, which is the name of a file's folder."""
    return {path.parent.name: pd.read_csv(path) for path in paths}


def _samples(path: Path_ | None) -> pd.DataFrame:
    names = ["sample_id", "image", "gender", "split"]
    if path is None:
        return pd.DataFrame(columns=names[1:])
    return pd.read_parquet(path, columns=names).set_index("sample_id")


def _sequences(paths: list[Path], samples: pd.DataFrame) -> Iterable[DemonstrationSequence]:
    """Yield the longest sequence of the first run of each setting; of retrieved ones one query's.

    That is the first query in order of ids, which also stands behind shared sequences.
    """
    first = min(samples.index[samples["split"].astype(str) == QUERIES], default=None)
    for path in paths:
        table = pq.read_table(path, columns=list(_TURN))
        keys = table.select(list(_TURN[:5])).to_pandas().astype({"setting": str, "query": str})
        keys = keys[(keys["run"] == 1) & (keys["image_source"].astype(str) == REAL)]
        if keys.empty:
            raise ContractError(
                f"{path}: there is no context of the first run with photographs. "
                f"Run the step that draws demonstrations again."
            )
        for setting, own in keys.groupby("setting", sort=False):
            longest = own[own["shots"] == own["shots"].max()]
            query = longest["query"].min()
            chosen = longest.index[longest["query"] == query]
            asked = query if query in samples.index else first
            turns = table.take(chosen.to_list()).to_pandas().sort_values("turn")
            yield DemonstrationSequence(str(setting), _shown(turns), _query(samples, asked))


def _shown(turns: pd.DataFrame) -> tuple[Demonstration, ...]:
    role = turns["role"].astype(str)
    users, answers = turns[role == "user"], turns[role == "assistant"]
    rows = zip(users["image"], answers["text"], users["gender"], strict=True)
    return tuple(Demonstration(str(image), str(text), str(gender)) for image, text, gender in rows)


def _query(samples: pd.DataFrame, sample_id: str | None) -> Demonstration | None:
    if sample_id is None or sample_id not in samples.index:
        return None
    row = samples.loc[sample_id]
    return Demonstration(str(row["image"]), "", str(row["gender"]))


def _drawn(paths: list[Path], samples: pd.DataFrame) -> tuple[DrawnImage, ...]:
    """Return the captions that every generator drew, in the order of the first table."""
    found: dict[str, dict[str, str]] = {}
    facts: dict[str, tuple[str, str]] = {}
    for path in paths:
        for row in pd.read_parquet(path).to_dict("records"):
            if row["status"] != "ok":
                continue
            name = str(row["sample_id"])
            found.setdefault(name, {})[str(row["generator"])] = str(row["image"])
            facts.setdefault(name, (str(row["prompt"]), str(row["gender"])))
    complete = [name for name, images in found.items() if len(images) == len(paths)]
    shown = []
    for name in complete:
        images = found[name]
        if name in samples.index:
            images = {REAL: str(samples.loc[name]["image"]), **images}
        shown.append(DrawnImage(*facts[name], images))
    return tuple(shown)


def _word_lists(words: Mapping[str, Any], name: str, path: Path_) -> tuple[WordList, ...]:
    try:
        lists = words["lists"][name]
        return tuple(
            WordList(gender, {part: tuple(lists[side][part]) for part in PARTS})
            for gender, side in _SIDES.items()
        )
    except KeyError as error:
        raise ContractError(
            f"{path}: the key {error} of the list {name!r} is missing. "
            f"Compare with the file in the repository."
        ) from error
