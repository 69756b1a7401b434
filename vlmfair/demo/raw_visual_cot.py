"""A small VisualCoT download of drawn scenes: questions with steps, and GQA's scene graphs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from vlmfair.demo import wordings
from vlmfair.demo.raw_images import (
    MISSING,
    TRUNCATED,
    DrawnImage,
    image_size,
    lone_people,
    spread,
    write_image,
)
from vlmfair.demo.scenes import OCCUPATIONS, PLACES, Scene, boxes, sample_scene
from vlmfair.provenance import write_text

# Men of each occupation beyond the number of women.
MORE_MEN = 1
HOODED_SHARE = 0.25
SHORTEST, LONGEST = 130, 210
WORDS = {"male": "man", "female": "woman"}
# Each kind of question is asked about as many people; most have the answer yes or no.
KINDS = ("activity", "other activity", "place", "other place", "glasses", "doing", "where")
LOCATE = "Locate the person in the image"
SEEN = {
    "park": ("tree", "grass", "sky"),
    "street": ("building", "window", "road"),
    "beach": ("sea", "sand", "sun"),
    "kitchen": ("refrigerator", "cabinet", "floor"),
    "office": ("window", "monitor", "floor"),
    "stage": ("curtain", "floor"),
}
FOLDER = "cot_with_detailed_reasoning_steps"
IMAGES = "cot_image_data/gqa"
# Images without people, of which one shows the form of an answer.
EMPTY_PLACES = 3


def plan_visual_cot(per_cell: int, seed: int) -> list[DrawnImage]:
    """Decide every image: `per_cell` women and one man more of each occupation.

    A third of them have a second, shorter question. Beside them are three places without people,
    and one record for each way to be left out, as `_left_out` lists them.
    """
    rng = np.random.default_rng([seed, 8])
    counts = {"female": per_cell, "male": per_cell + MORE_MEN}
    cells = [
        (gender, occupation)
        for occupation in OCCUPATIONS
        for gender, count in counts.items()
        for _ in range(count)
    ]
    scenes = lone_people(rng, cells, HOODED_SHARE)
    kinds = spread(rng, KINDS, len(scenes))
    images = []
    for scene, kind in zip(scenes, kinds, strict=True):
        image = _image(rng, scene, _asked(rng, scene, kind))
        if rng.random() < 1 / 3:
            word = WORDS[scene.subject.gender]
            shorter = ("Is the {} old?", "no", "Look at their face")
            image = replace(image, more_rows=(_record(image, shorter, word),))
        images.append(image)
    for _ in range(EMPTY_PLACES):
        place = PLACES[rng.integers(len(PLACES))]
        images.append(_empty(rng, Scene((), place, int(rng.integers(2**31)))))
    return _numbered(rng, [*images, *_left_out(rng)])


def write_visual_cot(raw_dir: Path, images: Sequence[DrawnImage]) -> None:
    """Write the images, both scene graphs and, last, both parts of the records."""
    graphs: dict[str, dict[str, Any]] = {"train": {}, "val": {}}
    lines: dict[str, list[str]] = {"train": [], "val": []}
    for image in images:
        write_image(raw_dir, image)
        for row in (image.row, *image.more_rows):
            lines[row["part"]].append(row["record"])
        # A record's image is in either of the graphs, whatever the record's part.
        part = "val" if int(image.row["number"]) % 3 == 0 else "train"
        if image.row["graph"]:
            graphs[part][image.row["number"]] = json.loads(image.row["graph"])
    for part, content in graphs.items():
        write_text(raw_dir / "sceneGraphs" / f"{part}_sceneGraphs.json", json.dumps(content))
    for part, rows in lines.items():
        # The last line of one of the files has an end, that of the other has none.
        text = "\n".join(rows) + ("\n" if part == "train" else "")
        write_text(raw_dir / FOLDER / f"gqa_cot_{part}.jsonl", text)


def _asked(rng: np.random.Generator, scene: Scene, kind: str) -> tuple[str, str, str]:
    """A question with a gap for who it is about, its answer, and where one has to look."""
    occupation, place = scene.subject.occupation, scene.place
    if kind == "doing":
        return "What is the {} doing?", wordings.ACTIVITIES[occupation], _DOING
    if kind == "where":
        return "Where is the {}?", wordings.PLACE_PHRASES[place], _BACKGROUND
    if kind == "glasses":
        return "Is the {} wearing glasses?", _yes(scene.subject.age >= 50), "Look at their face"
    if kind.endswith("activity"):
        others = [name for name in OCCUPATIONS if name != occupation]
        asked = occupation if kind == "activity" else others[rng.integers(len(others))]
        return f"Is the {{}} {wordings.ACTIVITIES[asked]}?", _yes(asked == occupation), _DOING
    others = [name for name in PLACES if name != place]
    asked = place if kind == "place" else others[rng.integers(len(others))]
    return f"Is the {{}} {wordings.PLACE_PHRASES[asked]}?", _yes(asked == place), _BACKGROUND


_DOING, _BACKGROUND = "Look at what they are doing", "Look at the background"


def _yes(truth: bool) -> str:
    return "yes" if truth else "no"


def _image(
    rng: np.random.Generator, scene: Scene, asked: tuple[str, str, str], **changes: Any
) -> DrawnImage:
    width, height = image_size(rng, SHORTEST, LONGEST)
    objects = [(name, (0.0, 0.0, 1.0, 0.6)) for name in SEEN[scene.place]]
    for person, place in zip(scene.people, boxes(scene), strict=True):
        objects.append((WORDS[person.gender], place))
    objects.append(("scarf", (0.4, 0.3, 0.2, 0.1)))
    image = DrawnImage("", "", {"graph": _graph(objects, width, height)}, scene, width, height)
    return replace(image, row=_record(image, asked, WORDS[scene.subject.gender], **changes))


def _record(
    image: DrawnImage, asked: tuple[str, str, str], word: str, **changes: Any
) -> dict[str, str]:
    """Return one line's record, as yet without the image's name, and the image's scene graph."""
    question, answer, look = asked
    said = question.format(word)
    full = {"yes": f"Yes, the {word} is.", "no": f"No, the {word} is not."}
    left, top, width, height = boxes(image.scene)[0] if image.scene.people else (0, 0, 1, 1)
    box = [left * image.width, top * image.height]
    box += [(left + width) * image.width, (top + height) * image.height]
    record = {
        "question": said,
        "answer": answer,
        "full_answer": full.get(answer, f"The {word} is {answer}."),
        "image": "",
        "width": image.width,
        "height": image.height,
        "bboxs": [[max(0, round(value)) for value in box]],
        "dataset": "gqa",
        "split": "train",
        "thought": f"1. {LOCATE}. 2. {look}.",
        "reasoning": [{"operation": "select", "dependencies": [], "argument": word}],
    }
    changed = {key: value for key, value in {**record, **changes}.items() if value is not None}
    return {"graph": image.row["graph"], "record": json.dumps(changed)}


def _empty(rng: np.random.Generator, scene: Scene) -> DrawnImage:
    width, height = image_size(rng, SHORTEST, LONGEST)
    objects = [(name, (0.0, 0.0, 1.0, 0.6)) for name in SEEN[scene.place]]
    image = DrawnImage("", "", {"graph": _graph(objects, width, height)}, scene, width, height)
    asked = ("What place is this?", scene.place, "")
    text = {"full_answer": f"This is the {scene.place}.", "thought": f"1. {_BACKGROUND}."}
    return replace(image, row=_record(image, asked, "", **text))


def _graph(objects: Sequence[tuple[str, Sequence[float]]], width: int, height: int) -> str:
    entries = {}
    for number, (name, (left, top, wide, high)) in enumerate(objects):
        # A relation's object may be none of the graph's.
        relations = [{"name": "near", "object": str(900_001 + number)}] if number % 2 else []
        entries[str(900_000 + number)] = {
            "name": name,
            "h": round(high * height),
            "w": round(wide * width),
            "x": max(0, round(left * width)),
            "y": max(0, round(top * height)),
            "attributes": [],
            "relations": relations,
        }
    return json.dumps({"width": width, "height": height, "objects": entries})


def _left_out(rng: np.random.Generator) -> Iterator[DrawnImage]:
    """Questions without a gender word, of both genders, about several people, that ask who, or
    that resist; without steps, scene graph, or an answer; images of two people, of a group, that
    are missing or broken; and a line that is no JSON.
    """

    def ask(question: str, answer: str = "yes", **changes: Any) -> DrawnImage:
        scene = sample_scene(rng, two=False, hooded=False)
        return _image(rng, scene, (question, answer, _BACKGROUND), **changes)

    yield ask("What color is the scarf?", "blue", full_answer="The scarf is blue.")
    yield ask("Is the man to the left of the woman?")
    yield ask("Is the {} in front of the people?")
    yield ask("Who is the {} with the scarf?", "student")
    yield ask("Is the {} looking at his mother?")
    yield ask("Is the {} outdoors?", thought=None)
    yield ask("Is the {} indoors?", answer="")
    no_graph = ask("Is the {} standing?")
    yield replace(no_graph, row={**no_graph.row, "graph": ""})
    yield _image(
        rng,
        sample_scene(rng, two=True, hooded=False),
        ("Is the {} in front of the other person?", "yes", _BACKGROUND),
    )
    group = ask("Is the {} near the camera?")
    objects = [("man", (0.3, 0.1, 0.4, 0.8)), ("people", (0.0, 0.4, 0.9, 0.5))]
    graph = _graph(objects, group.width, group.height)
    yield replace(group, row={**group.row, "graph": graph})
    broken = ask("Is the {} far away?")
    yield replace(broken, row={**broken.row, "broken": "yes"})
    yield ask("Is the {} in the picture?").damaged(MISSING)
    yield ask("Is the {} in the middle?").damaged(TRUNCATED)


def _numbered(rng: np.random.Generator, images: Sequence[DrawnImage]) -> list[DrawnImage]:
    """Give images their numbers, in one random order; some records add the box to the name."""
    numbers = 2_310_000 + np.sort(rng.choice(100_000, len(images), replace=False))
    named = []
    for number, place in zip(numbers, rng.permutation(len(images)), strict=True):
        image = images[place]
        name = f"{number}.jpg"
        part = "val" if rng.random() < 0.15 else "train"
        boxed = rng.random() < 0.1
        rows = []
        for row in (image.row, *image.more_rows):
            record = json.loads(row["record"])
            record["image"] = f"{name}###{record['bboxs'][0]}" if boxed else name
            record["split"] = part
            text = json.dumps(record)
            text = text[: len(text) // 2] if "broken" in row else text
            rows.append(
                {"part": part, "number": str(number), "graph": row["graph"], "record": text}
            )
        stored = f"{IMAGES}/{name}"
        named.append(
            replace(image, path=name, stored=stored, row=rows[0], more_rows=tuple(rows[1:]))
        )
    return named
