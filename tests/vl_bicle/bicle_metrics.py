"""Made-up judgements of all tasks of VL-BICLE, measured as a run would, for tests of its tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
from bicle_samples import items, samples

from vlmfair.papers.vl_bicle.contexts import shared_contexts
from vlmfair.papers.vl_bicle.measure import measure_model
from vlmfair.papers.vl_bicle.measure_data import measure_contexts, measure_data
from vlmfair.papers.vl_bicle.measure_mitigation import measure_mitigation
from vlmfair.papers.vl_bicle.measure_rows import BicleRows, Place
from vlmfair.papers.vl_bicle.tasks import RETRIEVED, SAMPLED, TASKS, Task, runs_of

PULL = {"MS": -1.0, "FS": 1.0, "SIIR": -0.8, "SITR": -0.8}
SKIPPED = [
    {"task": "dci", "setting": setting, "shots": 8, "run": run, "image_source": "real", "images": 9}
    for setting in SAMPLED
    for run in (1, 2)
]


def cells_of(task: Task, shots: Sequence[int], runs: int, sources: Sequence[str]) -> list[tuple]:
    """Every cell that a run asks of a task: source, setting, shots, run."""
    settings = (*SAMPLED, *RETRIEVED) if task.name == "coco_bias" else SAMPLED
    cells: list[tuple] = [("real", "zero-shot", 0, 1)]
    for setting in settings:
        for source in ("real", *sources):
            if source != "real" and (task.name != "coco_bias" or setting not in ("MS", "FS")):
                continue
            cells += [
                (source, setting, k, run) for k in shots if k for run in runs_of(setting, runs)
            ]
    return cells


def judgements(
    task: Task,
    *,
    seed: int,
    queries: int = 12,
    shots: Sequence[int] = (0, 2, 4, 6, 8),
    runs: int = 2,
    strength: float = 0.1,
    sources: Sequence[str] = ("flux", "sd35l"),
) -> pa.Table:
    """Judgements in which demonstrations of one gender pull errors to the other one."""
    random = np.random.default_rng([seed, list(TASKS).index(task.name)])
    rows = []
    for source, setting, k, run in cells_of(task, shots, runs, sources):
        for gender, sign in (("Male", 1.0), ("Female", -1.0)):
            chance = 0.25 + strength * sign * PULL.get(setting, 0.0) * k / 4
            wrong = random.random(queries) < np.clip(chance, 0, 1)
            for number, error in enumerate(wrong):
                shown = bool(error or random.random() < 0.9)
                length = int(random.integers(6, 12))
                rows.append(
                    {
                        **{"sample_id": f"{task.dataset}/{gender}{number:03d}", "gender": gender},
                        **{"setting": setting, "shots": k, "run": run, "image_source": source},
                        **{"status": "ok", "error": float(error), "revealed": shown},
                        **{"length": length, "clipscore": float(random.normal(30, 1))},
                        **{"both": bool(error and number % 5 == 0), "neutral": not shown},
                        "formatted": number != 3,
                        "bleu": [length, 9, *(length - n - 2 for n in range(4))]
                        + [length - n for n in range(4)],
                        "judge": "lexical" if task.experiment == "vqa" else "words",
                    }
                )
    frame = pd.DataFrame(rows)
    if not task.has_captions:
        frame = frame.drop(columns=["length", "clipscore", "both", "neutral", "bleu"])
    return pa.Table.from_pandas(frame, preserve_index=False)


def measure(model: str, *, seed: int, bootstraps: int = 40, **changes: object) -> pd.DataFrame:
    """The metrics of one model; eight shots of DCI were never asked."""
    judged = {}
    for name, task in TASKS.items():
        table = judgements(task, seed=seed, **changes)  # type: ignore[arg-type]
        if name == "dci":
            keep = pd.Series(table["shots"].to_pandas() != 8)
            table = table.filter(pa.array(keep))
        judged[name] = table
    own = measure_model(judged, model=model, bootstraps=bootstraps, skipped=SKIPPED).to_pandas()
    drawn = measure_mitigation(judged["coco_bias"], model=model, bootstraps=bootstraps)
    return pd.concat([own, drawn.to_pandas()], ignore_index=True)


def data_metrics() -> pd.DataFrame:
    """Numbers of images and of men among demonstrations."""
    part = {"visogender_oo": "OO", "visogender_op": "OP"}
    own = [
        items(name, [{**row, "task": part.get(name)} for row in samples(task.samples)])
        for name, task in TASKS.items()
    ]
    contexts = [shared_contexts(one, "MS", 1, shots=(2, 4), seed=0) for one in own]
    tables = [measure_data(own), measure_contexts(contexts, own)]
    return pd.concat([table.to_pandas() for table in tables], ignore_index=True)


def synthesis_metrics() -> pd.DataFrame:
    """Numbers of the drawn images themselves, in the form of `measure_images`."""
    rows = BicleRows()
    start = Place("synthesis", "coco_bias", prompt="caption")
    for source, score in (("real", 31.0), ("flux", 30.0), ("sd35l", 29.0)):
        place = start.at(image_source=source)
        for group, n in (("Male", 9), ("Female", 8), ("all", 17)):
            rows.add(place, "image_clipscore", group, score, n, ci=(score - 1, score + 1))
            read = place.at(item="clip:ViT-B-32")
            rows.add(read, "gender_as_captioned", group, 90.0, n, ci=(80.0, 95.0))
    for source in ("flux", "sd35l"):
        for name, count in (("drawn", 17), ("refused", 1), ("failed", 1), ("truncated", 3)):
            rows.add(start.at(image_source=source), name, "all", count, 19)
    rows.add(start, "dropped", "all", 2, 19)
    return rows.table().to_pandas()
