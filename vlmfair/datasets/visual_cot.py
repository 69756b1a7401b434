"""VisualCoT: questions with reasoning steps about GQA images of one person (Shao et al., 2024)."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from vlmfair.datasets.base import (
    ParsedDataset,
    ProblemLog,
    as_records,
    chosen_rows,
    existing_folder,
    finish,
    restrict,
    with_images,
)
from vlmfair.datasets.funnel import AT_PARITY, NOT_IN_POOL, READABLE, WITH_IMAGE, Step
from vlmfair.datasets.images import ImageFacts, ImageFolder, check_image, path_fault
from vlmfair.datasets.json_files import parse_json, read_json, read_lines, text_of
from vlmfair.datasets.options import WHOLE_NUMBER
from vlmfair.datasets.splits import EXAMPLE, FIFTH_OF_EACH_GENDER, SEED, rank, split
from vlmfair.errors import RawDataError
from vlmfair.text.gender import names_person, read_gender, several_people, tokens
from vlmfair.text.neutralise import BOTH_GENDERS, neutralise
from vlmfair.text.words import (
    GenderWords,
    NeutralWords,
    PersonNames,
    load_gender_words,
    load_neutral_words,
    load_person_names,
)

NAME = "visual_cot"
OPTIONS = {"seed": WHOLE_NUMBER}
# Both parts are read together; the part says nothing about pool and queries.
RECORDS = ("gqa_cot_train.jsonl", "gqa_cot_val.jsonl")
RECORD_FOLDERS = ("cot_with_detailed_reasoning_steps", "")
GRAPHS = ("train_sceneGraphs.json", "val_sceneGraphs.json")
GRAPH_FOLDERS = ("sceneGraphs", "")
LAYOUTS = ("cot_image_data/gqa", "gqa", "images", "")
FETCH = (
    "Fetch cot_with_detailed_reasoning_steps/gqa_cot_train.jsonl and gqa_cot_val.jsonl from "
    "https://huggingface.co/datasets/deepcs233/Visual-CoT, unpack sceneGraphs.zip and images.zip "
    "of https://cs.stanford.edu/people/dorarad/gqa/download.html into sceneGraphs/ and images/, "
    "all in this folder."
)
FUNNEL = (
    READABLE,
    Step("with reasoning steps", ("no_thought",)),
    Step("with a scene graph", ("no_scene_graph",)),
    Step("with exactly one person", ("no_person", "several_persons")),
    Step("with a gender word in the question", ("no_gender_words",)),
    Step("not asking who", ("who_question",)),
    Step("without words for several people", ("mentions_several",)),
    Step("that can be neutralised", ("not_neutralisable",)),
    Step("of one gender in the question", ("conflicting_gender_words",)),
    Step("with the longest question of their image", ("shorter_question",)),
    WITH_IMAGE,
    NOT_IN_POOL,
    AT_PARITY,
)
# What a reader of one of the datasets wrote behind the image's name: its box.
_BOX = re.compile(r"###.*$")
# How many records without people are tried until the image of one can be opened.
TRIED_EXAMPLES = 20


class _Filter:
    """The filters of VL-BICLE, appendix 0.A.4, on one record after the other."""

    def __init__(self, graphs: Mapping[str, tuple[int, int]]) -> None:
        self._graphs = graphs
        self._words: GenderWords = load_gender_words()
        self._neutral: NeutralWords = load_neutral_words()

    def fault(self, record: Mapping[str, str]) -> tuple[str, str] | None:
        """Return the reason, and a detail, of the first filter that a record fails."""
        question = record["question"]
        if not record["thought"]:
            return "no_thought", ""
        fault = self._persons(record["relative"])
        if fault:
            return fault
        reading = read_gender(question, self._words)
        if reading.gender is None:
            return "no_gender_words", "in the question"
        if "who" in tokens(question):
            return "who_question", ""
        # The steps say "they" of one person, too; they are no part of the sample's own text.
        text = f"{question} {record['answer']} {record['full_answer']}"
        several = several_people(text, self._words)
        if several:
            return "mentions_several", f"the text has {', '.join(dict.fromkeys(several))}"
        neutral = neutralise(question, self._words, self._neutral)
        found = ", ".join(dict.fromkeys(reading.masculine + reading.feminine))
        if neutral.reason == BOTH_GENDERS:
            return "conflicting_gender_words", f"the question has {found}"
        if neutral.text is None:
            return "not_neutralisable", f"{', '.join(dict.fromkeys(neutral.resisted))} of {found}"
        return None

    def gender(self, question: str) -> str | None:
        """Return the gender of a question that passed."""
        return read_gender(question, self._words).gender

    def neutral(self, question: str) -> str | None:
        """Return a question that passed without its gender."""
        return neutralise(question, self._words, self._neutral).text

    def is_example(self, record: Mapping[str, str]) -> bool:
        """Return whether a record is about no person, in its image and in all its text."""
        text = " ".join(record[name] for name in ("question", "answer", "full_answer", "thought"))
        return (
            bool(record["thought"])
            and self._graphs.get(_image_id(record["relative"])) == (0, 0)
            and read_gender(text, self._words).gender is None
            and not several_people(text, self._words)
            and not names_person(text, self._words)
            and "who" not in tokens(text)
        )

    def _persons(self, relative: str) -> tuple[str, str] | None:
        graph = self._graphs.get(_image_id(relative))
        if graph is None:
            return "no_scene_graph", ""
        alone, several = graph
        if not alone and not several:
            return "no_person", ""
        if (alone, several) != (1, 0):
            return "several_persons", f"{alone} objects are one person, {several} are several"
        return None


def parse(
    raw_dir: Path,
    *,
    only: Collection[str] | None = None,
    threads: int = 1,
    seed: str = SEED,
) -> ParsedDataset:
    """Keep one question about each image of one person, neutralise it, and divide the images.

    The filters of VL-BICLE, appendix 0.A.4. Further columns: `thought`, `full_answer` and
    `neutral_question`. One record without people, drawn by the seed, has the split `example` and
    no gender: it shows the form of an answer where there are no demonstrations. `only` holds image
    names (`2331819.jpg`). Raises RawDataError when the folder or a file is missing, or nothing is
    usable.
    """
    folder = existing_folder(Path(raw_dir), "VisualCoT", FETCH)
    log = ProblemLog(NAME)
    records = _read_records(folder, log)
    annotated = records["relative"].tolist()
    if only is not None:
        records = restrict(records, map(canonical_path, only), annotated, log)
    accept = _Filter(_read_graphs(folder))
    faults = [accept.fault(record) for record in as_records(records)]
    for record, fault in zip(records.itertuples(), faults, strict=True):
        if fault:
            log.add(str(record.place), *fault, str(record.raw))
    rows = _longest(chosen_rows(records, [fault is None for fault in faults]), log)
    rows = rows.assign(
        gender=rows["question"].map(accept.gender),
        neutral_question=rows["question"].map(accept.neutral),
        split=None,
    )
    images = ImageFolder(folder, LAYOUTS)
    example = _example(records, accept, images, seed)
    rows = pd.concat([rows, example]) if len(example) else rows
    rows = rows.drop(columns=["place"])
    samples = with_images(rows, images, log, threads=threads, summarise=False)
    return finish(split(samples, FIFTH_OF_EACH_GENDER, seed, log), log, folder, FETCH)


def canonical_path(path: str) -> str:
    """Return an image's file name: `cot/gqa/1.jpg###[0, 0, 9, 9]` -> `1.jpg`."""
    return _BOX.sub("", path.strip()).replace("\\", "/").rsplit("/", 1)[-1]


def count_persons(graph: Any, names: PersonNames) -> tuple[int, int]:
    """Return how many objects of a scene graph are one person, and how many are several."""
    objects = graph.get("objects") if isinstance(graph, dict) else None
    entries = objects.values() if isinstance(objects, dict) else ()
    called = [(text_of(entry, "name") or "").casefold() for entry in entries]
    alone = sum(name in names.singular for name in called)
    return alone, sum(name in names.plural for name in called)


def _name_alone(entry: dict[str, Any]) -> dict[str, Any]:
    """Return an object of a scene graph without its relations, box and attributes."""
    return {"name": entry.get("name")} if "relations" in entry else entry


def _image_id(relative: str) -> str:
    return relative.rsplit(".", 1)[0]


def _first_file(folder: Path, places: Collection[str], name: str) -> Path:
    found = [folder / place / name for place in places]
    return next((path for path in found if path.is_file()), found[0])


def _read_graphs(folder: Path) -> dict[str, tuple[int, int]]:
    """Return the numbers of persons by image, of both files: a part's image may be in either."""
    names = load_person_names()
    persons: dict[str, tuple[int, int]] = {}
    for file in GRAPHS:
        path = _first_file(folder, GRAPH_FOLDERS, file)
        content = read_json(path, fetch=FETCH, reduce=_name_alone)
        if not isinstance(content, dict):
            raise RawDataError(f"{path}: there are no scene graphs by image in it. {FETCH}")
        persons |= {image: count_persons(graph, names) for image, graph in content.items()}
    return persons


def _read_records(folder: Path, log: ProblemLog) -> pd.DataFrame:
    columns = ("relative", "question", "answer", "full_answer", "thought", "place", "raw")
    read = []
    for file in RECORDS:
        path = _first_file(folder, RECORD_FOLDERS, file)
        for number, line in read_lines(path, fetch=FETCH):
            record, place = _record(line), f"{file}:{number}"
            if isinstance(record, str):
                log.add(place, "malformed_record", record, line[:500])
                continue
            read.append((*record, place, line))
    rows = pd.DataFrame(read, columns=columns, dtype=object)
    return rows.assign(sample_id=NAME + "/" + rows["relative"])


def _record(line: str) -> tuple[str, str, str, str, str] | str:
    """Return image, question, answer, full answer and thought, or what is wrong with a line."""
    try:
        content = parse_json(line)
    except ValueError:
        return "the line is no JSON"
    image, question, answer = (text_of(content, key) for key in ("image", "question", "answer"))
    if not (image and question and answer):
        return "image, question or answer is missing"
    relative = canonical_path(image)
    if path_fault(relative):
        return "the image is no file of the dataset"
    further = (text_of(content, key) or "" for key in ("full_answer", "thought"))
    return (relative, question, answer, *further)  # type: ignore[return-value]


def _longest(rows: pd.DataFrame, log: ProblemLog) -> pd.DataFrame:
    """Keep the longest question about each image, the first of several that are as long."""
    lengths = rows["question"].str.len()
    order = lengths.sort_values(ascending=False, kind="stable").index
    kept = rows.loc[order].drop_duplicates("sample_id").index
    longest = {row.sample_id: row.question for row in rows.loc[kept].itertuples()}
    for row in rows.drop(index=kept).itertuples():
        detail = f"the longest is {json.dumps(longest[row.sample_id], ensure_ascii=False)}"
        log.add(str(row.place), "shorter_question", detail, str(row.raw))
    return rows.loc[rows.index.isin(kept)]


def _example(
    records: pd.DataFrame, accept: _Filter, images: ImageFolder, seed: str
) -> pd.DataFrame:
    """Return the first record without people, in a seeded order, whose image can be opened."""
    candidates = records.drop_duplicates("sample_id")
    suitable = [accept.is_example(record) for record in as_records(candidates)]
    candidates = chosen_rows(candidates, suitable)
    order = [rank(own, seed, "example") for own in candidates["sample_id"]]
    candidates = candidates.assign(order=order).sort_values("order").drop(columns=["order"])
    for place in range(min(TRIED_EXAMPLES, len(candidates))):
        chosen = candidates.iloc[[place]]
        path = images.find(str(chosen["relative"].iloc[0])).path
        if path is not None and isinstance(check_image(path), ImageFacts):
            return chosen.assign(split=EXAMPLE)
    return candidates.iloc[:0].assign(split=[])
