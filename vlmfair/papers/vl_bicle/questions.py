"""The prompts of VL-BICLE and of its judge, from `resources/prompts/vl_bicle.yaml`.

Light by design (PyYAML only): planning and the workflow's parsing both import it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

from vlmfair.errors import ConfigError
from vlmfair.papers.vl_bicle.tasks import GENDERS
from vlmfair.prompts_file import check_digests, read_prompts_file, stated_digests
from vlmfair.provenance import sha256_of_text

PROMPTS = ("pronoun", "caption", "direct", "cot")
LABEL_SET = "pronoun"


@dataclass(frozen=True)
class Prompt:
    """A user's text, the answer of a demonstration, and what the query's answer begins with."""

    text: str
    answer: str
    prefix: str = ""


@dataclass(frozen=True)
class Prompts:
    """The prompts by name, the pronouns by gender, the scored labels, and the judge's texts."""

    prompts: Mapping[str, Prompt]
    pronouns: Mapping[str, str]
    labels: tuple[str, ...]
    judge_system: str
    judge_text: str
    source_sha256: str

    def user_text(self, prompt: str, question: str = "") -> str:
        """Return what the user says behind the image. Raises ConfigError on an unknown prompt."""
        return fill(self._prompt(prompt).text, question=question)

    def prefix(self, prompt: str, occupation: str = "") -> str:
        """Return what the answer of a query begins with, empty but for pronouns."""
        return fill(self._prompt(prompt).prefix, occupation=occupation)

    def answer(self, prompt: str, **values: str) -> str:
        """Return what a demonstration answers.

        `values` are occupation, pronoun and companion, or caption, or answer and thought. Raises
        ConfigError on an unknown prompt.
        """
        return fill(self._prompt(prompt).answer, **values)

    def judge_question(self, question: str, truth: str, answer: str) -> str:
        """Return what the judge of visual questions is asked."""
        return fill(self.judge_text, question=question, truth=truth, answer=answer)

    def digest(self) -> str:
        """Return the SHA-256 of the prompts file, for manifests."""
        return self.source_sha256

    def _prompt(self, name: str) -> Prompt:
        if name not in self.prompts:
            raise ConfigError(
                f"vl_bicle has no prompt {name!r}. Use one of {', '.join(self.prompts)}."
            )
        return self.prompts[name]


def fill(template: str, **values: str) -> str:
    """Return a template with each `{name}` replaced once; braces in values stay as they are."""
    parts, rest = [], template
    while rest:
        places = [
            (rest.find("{" + name + "}"), name) for name in values if "{" + name + "}" in rest
        ]
        if not places:
            break
        start, name = min(places)
        parts += [rest[:start], values[name]]
        rest = rest[start + len(name) + 2 :]
    return "".join([*parts, rest])


def load_prompts(path: str | PathLike[str]) -> Prompts:
    """Read the prompts file.

    Raises ConfigError on a missing file or key, pronouns or labels that do not fit each other, and
    a text that does not have the SHA-256 stated in the file.
    """
    prompts, stated = read_prompts_file(
        path, lambda content, digest: (_read(content, digest), stated_digests(content))
    )
    _check(prompts, stated, path)
    return prompts


def _read(content: Mapping[str, Any], digest: str) -> Prompts:
    forms = content["label_sets"][LABEL_SET]
    return Prompts(
        prompts={
            name: Prompt(
                str(content[name]["text"]),
                str(content[name]["answer"]),
                str(content[name].get("prefix", "")),
            )
            for name in PROMPTS
        },
        pronouns={gender: str(content["pronouns"][gender]) for gender in GENDERS},
        labels=tuple(str(form) for listed in forms.values() for form in listed),
        judge_system=str(content["judge"]["system"]),
        judge_text=str(content["judge"]["text"]),
        source_sha256=digest,
    )


def prompt_digests(prompts: Prompts) -> dict[str, str]:
    """Return the SHA-256 of each text before anything is filled in."""
    texts = {}
    for name, prompt in prompts.prompts.items():
        texts[name] = "\n".join((prompt.text, prompt.prefix, prompt.answer))
    texts["judge"] = prompts.judge_system + prompts.judge_text
    return {name: sha256_of_text(text) for name, text in texts.items()}


def _check(prompts: Prompts, stated: Mapping[str, str], path: str | PathLike[str]) -> None:
    expected = tuple(f" {prompts.pronouns[gender]}" for gender in GENDERS)
    if prompts.labels != expected:
        raise ConfigError(
            f"{path}: label_sets.pronoun must list {' and '.join(map(repr, expected))}, in this "
            f"order: the pronouns as they continue the prefix. Restore them."
        )
    check_digests(path, stated, prompt_digests(prompts))
