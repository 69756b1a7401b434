"""The plan of a whole run: every paper's questions to every model that the config names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vlmfair.cost.architecture import Architecture, load_architectures
from vlmfair.cost.assumptions import Assumptions, load_assumptions
from vlmfair.cost.estimate import HOUR, TERA, Card, Estimate, Work, estimate, over_context
from vlmfair.cost.gras import gras_parts
from vlmfair.cost.lvlm_fairness import Counted, Wording, generation_part, lvlm_parts
from vlmfair.cost.parts import Part
from vlmfair.cost.subject import Subject, make_subject
from vlmfair.cost.vl_bicle import Queries, bicle_parts, verdicts_part
from vlmfair.models.registry import ModelEntry
from vlmfair.papers.gras.questions import load_prompts as load_gras_prompts
from vlmfair.papers.gras.questions import load_traits, select_traits
from vlmfair.papers.lvlm_fairness.questions import load_classes, load_sub_questions
from vlmfair.papers.lvlm_fairness.questions import load_prompts as load_lvlm_prompts
from vlmfair.papers.vl_bicle.questions import load_prompts as load_bicle_prompts
from vlmfair.papers.vl_bicle.settings import LEXICAL

Jobs = Mapping[tuple[str, str], int]


@dataclass(frozen=True)
class Resources:
    """The prompts and words of the papers, and what a plan assumes."""

    folder: Path
    assumptions: Assumptions
    architectures: Mapping[str, Architecture]

    @property
    def words(self) -> Path:
        """The folder of word lists."""
        return self.folder / "words"

    @property
    def prompts(self) -> Path:
        """The folder of prompts."""
        return self.folder / "prompts"


def load_resources(folder: Path) -> Resources:
    """Read what a plan needs from the folder of resources."""
    cost = folder / "cost"
    return Resources(
        folder,
        load_assumptions(cost / "assumptions.yaml"),
        load_architectures(cost / "architectures.yaml"),
    )


@dataclass(frozen=True)
class Asked:
    """How much is asked about: GRAS's images by dataset, the counts of the two other papers."""

    gras: Mapping[str, int]
    lvlm_fairness: Counted
    vl_bicle: Mapping[str, Queries]


def plan_parts(
    config: Mapping[str, Any],
    registry: Mapping[str, ModelEntry],
    resources: Resources,
    asked: Asked,
    cache: Path | None = None,
) -> dict[tuple[str, str], tuple[Subject, list[Part]]]:
    """Return the parts of each paper and model that a config names, in its order.

    Raises ConfigError on a style, family or occupation that a paper has no prompt for.
    """
    subjects = {
        name: make_subject(entry, resources.architectures, cache)
        for name, entry in registry.items()
    }
    found: dict[tuple[str, str], tuple[Subject, list[Part]]] = {}

    def add(paper: str, name: str, parts: list[Part]) -> None:
        known = found.setdefault((paper, name), (subjects[name], []))
        known[1].extend(parts)

    _add_gras(config["gras"], subjects, resources, asked, add)
    _add_lvlm_fairness(config["lvlm_fairness"], subjects, resources, asked, add)
    _add_vl_bicle(config["vl_bicle"], subjects, resources, asked, add)
    return found


def _add_gras(
    settings: Mapping[str, Any],
    subjects: Mapping[str, Subject],
    resources: Resources,
    asked: Asked,
    add: Any,
) -> None:
    prompts = load_gras_prompts(resources.prompts / "gras.yaml")
    traits = select_traits(load_traits(resources.words / "gras_traits.csv"), settings["traits"])
    style = settings["prompt_style"]
    for name in settings["models"]:
        parts = gras_parts(
            subjects[name],
            prompts,
            traits,
            style,
            asked.gras,
            resources.assumptions,
            # The selection has so many images, whatever the datasets have.
            announced=False,
        )
        add("gras", name, parts)


def _add_lvlm_fairness(
    settings: Mapping[str, Any],
    subjects: Mapping[str, Subject],
    resources: Resources,
    asked: Asked,
    add: Any,
) -> None:
    prompts = load_lvlm_prompts(
        resources.prompts / "lvlm_fairness.yaml",
        load_classes(resources.words / "facet_classes.csv"),
    )
    questions = load_sub_questions(resources.words / "lvlm_sub_questions.yaml")
    wording = Wording(prompts, questions, settings)
    for name in settings["models"]:
        parts = lvlm_parts(subjects[name], wording, asked.lvlm_fairness, resources.assumptions)
        add("lvlm_fairness", name, parts)
    generator = settings["generator"]
    if generator:
        part = generation_part(subjects[generator], wording, resources.assumptions)
        add("lvlm_fairness", generator, [part])


def _add_vl_bicle(
    settings: Mapping[str, Any],
    subjects: Mapping[str, Subject],
    resources: Resources,
    asked: Asked,
    add: Any,
) -> None:
    for name in settings["models"]:
        parts = bicle_parts(subjects[name], asked.vl_bicle, settings, resources.assumptions)
        add("vl_bicle", name, parts)
    judge = settings["judge"]
    if judge != LEXICAL:
        prompts = load_bicle_prompts(resources.prompts / "vl_bicle.yaml")
        part = verdicts_part(
            subjects[judge], asked.vl_bicle, prompts, settings, resources.assumptions
        )
        add("vl_bicle", judge, [part])


def estimates_of(
    parts: Mapping[tuple[str, str], tuple[Subject, list[Part]]],
    card: Card,
    resources: Resources,
    jobs: Jobs,
) -> list[Estimate]:
    """Return a row for each paper and model; `jobs` are numbers of inference jobs."""
    return [
        estimate(subject, own, card, resources.assumptions, jobs.get(key, 0))
        for key, (subject, own) in parts.items()
        if own
    ]


def notes_on(
    parts: Mapping[tuple[str, str], tuple[Subject, list[Part]]],
    estimates: Sequence[Estimate],
    card: Card,
    resources: Resources,
    money_cap: float | None,
) -> list[str]:
    """Return what the table rests on, and what in it deserves a look."""
    notes = [
        f"Hours are operations divided by {card.utilisation:.0%} of {card.peak_tflops:g} TFLOP/s, "
        f"the peak of one {card.name}; answers take at least what it takes to read the weights "
        f"at {card.utilisation:.0%} of {card.bandwidth_gb_s:,g} GB/s for each token of up to 64 "
        f"answers that grow together.",
        "Plain: one full forward for each question, as in the papers' scripts. Ours: what "
        "questions begin with together is computed once. Encoders are in neither.",
        "Estimated, because nothing here measures it yet: text, the tokens of texts of a model "
        "whose tokenizer is not downloaded (within about 10%); sizes, images of a usual size; "
        "answers, their lengths; counts, numbers of images as the sheet of datasets announces "
        "them. What is assumed stands in resources/cost/assumptions.yaml.",
    ]
    notes += _published(estimates, resources)
    for one in estimates:
        if one.money is not None and money_cap is not None and one.money > money_cap:
            notes.append(
                f"{one.paper}, {one.model}: about {one.money:,.0f} is more than "
                f"inference.money_cap, {money_cap:g}, at which its jobs stop."
            )
    for (paper, name), (subject, own) in parts.items():
        long = over_context(subject, own)
        if long:
            notes.append(
                f"{paper}, {name}: prompts of {', '.join(long)} are longer on average than the "
                f"{subject.entry.context_length:,} tokens of its context, and become error rows."
            )
    return notes


def _published(estimates: Sequence[Estimate], resources: Resources) -> list[str]:
    """Set the plain form's hours beside those that a paper states for its own models."""
    notes = []
    for paper, stated in resources.assumptions.published.items():
        own = [one for one in estimates if one.paper == paper and one.plain.hours is not None]
        if len(own) != stated.models:
            continue
        plain, ours = (sum(work.hours or 0.0 for work in works) for works in _works(own))
        flops = sum(one.plain.flops or 0.0 for one in own)
        reached = flops / (stated.hours * HOUR * stated.peak_tflops * TERA)
        notes.append(
            f"{paper}: the paper states about {stated.hours:g} hours on one {stated.card} for its "
            f"{stated.models} models; those of this run take {plain:,.3g} in the plain form and "
            f"{ours:,.3g} in ours. {stated.hours:g} hours for the plain form's operations are "
            f"{reached:.1%} of that card's peak."
        )
    return notes


def _works(estimates: Sequence[Estimate]) -> tuple[list[Work], list[Work]]:
    return [one.plain for one in estimates], [one.ours for one in estimates]
