"""Figures of a full-size run of GRAS: its speed, and what its jobs and answers took."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vlmfair.errors import InferenceError
from vlmfair.usage import read_usage

# The bars of the full-size run: times the plain form, MB of memory of a job, MB of answers.
BARS = {"ratio": 4.0, "peak_megabytes": 3000.0, "answer_megabytes": 400.0}
PLAIN, OURS = "full_forward", "auto"
INFER = "infer/"


@dataclass(frozen=True)
class JobUsage:
    """One job: rule and wildcards, wall and CPU time in seconds, most memory in MB (10^6 bytes)."""

    job: str
    seconds: float
    cpu_seconds: float
    peak_megabytes: float


def read_jobs(benchmarks: Path, logs: Path) -> list[JobUsage]:
    """Return what every job with a benchmark file took, by name.

    Snakemake looks at a job's memory and CPU time every half second first and later every half
    minute; the log's last line has the exact numbers, and the larger one counts.
    """
    jobs = []
    for path in sorted(benchmarks.rglob("*.tsv")):
        name = path.relative_to(benchmarks).with_suffix("")
        with path.open(encoding="utf-8", newline="") as opened:
            rows = list(csv.DictReader(opened, delimiter="\t"))
        exact = read_usage((logs / name).with_suffix(".log"))
        peaks = [_number(row["max_rss"]) * 1024**2 / 1e6 for row in rows]
        times = [_number(row["cpu_time"]) for row in rows]
        if exact is not None:
            peaks.append(exact.peak_megabytes)
            times.append(exact.cpu_seconds)
        wall = max((_number(row["s"]) for row in rows), default=0.0)
        jobs.append(
            JobUsage(name.as_posix(), wall, max(times, default=0.0), max(peaks, default=0.0))
        )
    return jobs


def collect_figures(
    jobs: Sequence[JobUsage],
    speed: Mapping[str, Mapping[str, float]],
    manifests: Mapping[str, Mapping[str, Any]],
    *,
    images: int,
    answer_bytes: int,
) -> dict[str, Any]:
    """Return the figures of a run, each bar with whether it is met.

    `speed` is what `measure_speed` gives, `manifests` those of the responses by the name of their
    inference job (`infer/<paper>/<model>/<shard>`). Speeds are questions per second of CPU time on
    one thread; `ratio` sets that of the run's own inference jobs against the plain form on a
    sample, `sample_ratio` compares both on the sample. Raises InferenceError when no job of the
    run computed all its answers, since stored ones tell nothing of speed.
    """
    by_name = {job.job: job for job in jobs}
    computed = [
        (by_name[name], manifest["answers"]["asked"])
        for name, manifest in manifests.items()
        if name in by_name and not manifest["answers"]["stored"]
    ]
    if not computed:
        raise InferenceError(
            "the full-size run took its answers from the store, which tells nothing of speed. "
            "Delete its folder below results/ and run again."
        )
    questions = sum(asked for _, asked in computed)
    cpu_seconds = sum(job.cpu_seconds for job, _ in computed)
    plain, ours = speed[PLAIN]["questions_per_second"], speed[OURS]["questions_per_second"]
    largest = max(jobs, key=lambda job: job.peak_megabytes)
    figures: dict[str, Any] = {
        "images": images,
        "questions": sum(sum(m["answers"].values()) for m in manifests.values()),
        "inference_modes": _summed(manifest["inference_modes"] for manifest in manifests.values()),
        "questions_per_second": questions / cpu_seconds,
        "plain_questions_per_second": plain,
        "image_features_questions_per_second": speed["image_features"]["questions_per_second"],
        "ratio": questions / cpu_seconds / plain,
        "sample_questions": speed[PLAIN]["questions"],
        "sample_ratio": ours / plain,
        "inference_cpu_seconds": sum(j.cpu_seconds for j in jobs if j.job.startswith(INFER)),
        "job_seconds": sum(job.seconds for job in jobs),
        "peak_megabytes": largest.peak_megabytes,
        "peak_job": largest.job,
        "answer_megabytes": answer_bytes / 1e6,
        "jobs": {
            job.job: {
                "seconds": job.seconds,
                "cpu_seconds": job.cpu_seconds,
                "peak_megabytes": job.peak_megabytes,
            }
            for job in jobs
        },
    }
    figures["bars"] = {
        "ratio": figures["ratio"] >= BARS["ratio"],
        "peak_megabytes": figures["peak_megabytes"] < BARS["peak_megabytes"],
        "answer_megabytes": figures["answer_megabytes"] < BARS["answer_megabytes"],
    }
    return figures


def read_manifests(folder: Path) -> dict[str, Any]:
    """Return the manifests of all shards below `responses/`, by the name of their job.

    `folder` is that of the paper's results; its name is the paper's.
    """
    found = {}
    for path in sorted((folder / "responses").glob("*/*.manifest.json")):
        shard = path.name.removesuffix(".manifest.json")
        name = f"{INFER}{folder.name}/{path.parent.name}/{shard}"
        found[name] = json.loads(path.read_text(encoding="utf-8"))
    return found


def bytes_below(folder: Path) -> int:
    """Return the bytes of all files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def figures_as_markdown(figures: Mapping[str, Any]) -> str:
    """Return the figures as two tables: the run against its bars, and the jobs of each rule."""
    met = {True: "yes", False: "**no**"}
    bars = figures["bars"]
    modes = ", ".join(f"{mode} {count:,}" for mode, count in figures["inference_modes"].items())
    rows: list[tuple[str, str, str, str]] = [
        ("images", f"{figures['images']:,}", "", ""),
        ("questions", f"{figures['questions']:,}", "", ""),
        ("inference mode", modes, "", ""),
        ("questions per CPU second, in the run", f"{figures['questions_per_second']:,.0f}", "", ""),
        (
            "plain form: one full forward per question",
            f"{figures['plain_questions_per_second']:,.0f}",
            "",
            "",
        ),
        (
            "vision tower once per image, text per question",
            f"{figures['image_features_questions_per_second']:,.0f}",
            "",
            "",
        ),
        (
            "run / plain form",
            f"{figures['ratio']:.1f}",
            f">= {BARS['ratio']:.0f}",
            met[bars["ratio"]],
        ),
        (
            f"ours / plain form, both on the same {figures['sample_questions']:,.0f} questions",
            f"{figures['sample_ratio']:.1f}",
            "",
            "",
        ),
        (
            f"largest memory of a job, MB ({figures['peak_job']})",
            f"{figures['peak_megabytes']:,.0f}",
            f"< {BARS['peak_megabytes']:,.0f}",
            met[bars["peak_megabytes"]],
        ),
        (
            "answers on disk, MB",
            f"{figures['answer_megabytes']:,.0f}",
            f"< {BARS['answer_megabytes']:,.0f}",
            met[bars["answer_megabytes"]],
        ),
    ]
    return (
        _markdown(("figure", "measured", "bar", "met"), rows)
        + "\n"
        + _markdown(
            ("rule", "jobs", "CPU seconds, all", "wall seconds, longest", "memory, MB, largest"),
            _rows_by_rule(figures["jobs"]),
        )
    )


def _rows_by_rule(jobs: Mapping[str, Mapping[str, float]]) -> list[tuple[str, ...]]:
    by_rule: dict[str, list[Mapping[str, float]]] = {}
    for name, job in jobs.items():
        by_rule.setdefault(name.split("/")[0], []).append(job)
    return [
        (
            rule,
            f"{len(of_rule)}",
            f"{sum(job['cpu_seconds'] for job in of_rule):,.1f}",
            f"{max(job['seconds'] for job in of_rule):,.1f}",
            f"{max(job['peak_megabytes'] for job in of_rule):,.0f}",
        )
        for rule, of_rule in by_rule.items()
    ]


def _markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _summed(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for one in counts:
        for name, count in one.items():
            total[name] = total.get(name, 0) + count
    return total


def _number(text: str) -> float:
    """Return a number of a benchmark file, 0 where a job was too short to be looked at."""
    try:
        return float(text)
    except ValueError:
        return 0.0
