"""The registry of every table and figure of the papers, read from `config/artefacts.yaml`.

Light by design (PyYAML and jsonschema), because the Snakefile imports it at every parse.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from os import PathLike
from pathlib import Path
from typing import Any

from vlmfair.config import parse_yaml
from vlmfair.errors import ConfigError

PAPERS = ("gras", "lvlm_fairness", "vl_bicle")
SUFFIXES = {"table": ("csv", "tex", "html"), "figure": ("pdf", "png", "csv")}
_NUMBER = re.compile(r"(\d+)(?:([a-z])|-(\d+))?|[a-z][a-z_]*")
_METRIC = re.compile(r"[a-z][a-z_0-9]*/[a-z][a-z_0-9]*")


@dataclass(frozen=True)
class Artefact:
    """One table or figure, or one family of them, and where the paper has it.

    `number` is as printed ("2", "2a", "7-26") or a speaking name where there is no number.
    """

    id: str
    paper: str
    kind: str
    number: str
    title: str
    built: bool
    metric: str = ""
    caption: str = ""
    family: bool = False
    illustration: bool = False
    reason: str = ""

    @property
    def stem(self) -> str:
        """The file name without its suffix (and without model and page, for a family)."""
        return f"{self.kind}_{self.number}"

    @property
    def folder(self) -> str:
        """The folder below the results of a suite: `gras/tables`."""
        return f"{self.paper}/{self.kind}s"

    @property
    def suffixes(self) -> tuple[str, ...]:
        """The file formats in which the artefact is written."""
        return SUFFIXES[self.kind]

    @property
    def label(self) -> str:
        """The name for readers: `Table 2`, `Figures 7-26`, `Table: surface forms`."""
        kind = self.kind.capitalize()
        if not self.number[0].isdigit():
            return f"{kind}: {self.number.replace('_', ' ')}"
        return f"{kind}s {self.number}" if "-" in self.number else f"{kind} {self.number}"

    @property
    def numbers(self) -> tuple[int, ...]:
        """The paper's numbers that it covers: (2,) for "2a", 7 to 26 for "7-26", () for a name."""
        matched = _NUMBER.fullmatch(self.number)
        if matched is None or matched[1] is None:
            return ()
        return tuple(range(int(matched[1]), int(matched[3] or matched[1]) + 1))


def load_artefacts(path: str | PathLike[str]) -> tuple[Artefact, ...]:
    """Read and check the registry, in file order.

    Raises ConfigError on a missing file, an unknown or missing key, a repeated id, an id that does
    not follow from paper, kind and number, and an entry that is not built without a reason.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise ConfigError(
            f"{path}: the list of artefacts is missing. Restore it from the repository."
        ) from error
    entries = parse_yaml(text, path)
    if not isinstance(entries, list):
        raise ConfigError(f"{path}: this is not a list. Write one `- id: ...` entry per artefact.")
    artefacts = tuple(_read_entry(entry, path) for entry in entries)
    seen: set[str] = set()
    for artefact in artefacts:
        if artefact.id in seen:
            raise ConfigError(f"{path}: {artefact.id} is listed twice. Remove one of the entries.")
        seen.add(artefact.id)
    return artefacts


def _read_entry(entry: Any, path: str | PathLike[str]) -> Artefact:
    where = f"{path}: {entry.get('id') if isinstance(entry, Mapping) else entry!r}"
    if not isinstance(entry, Mapping):
        raise ConfigError(f"{where} is not an entry. Write id, paper, kind, number and title.")
    types = {field.name: bool if field.type == "bool" else str for field in fields(Artefact)}
    for key, value in entry.items():
        if key not in types:
            raise ConfigError(f"{where}: the key {key!r} is unknown. Use {', '.join(types)}.")
        if not isinstance(value, types[key]):
            raise ConfigError(
                f"{where}: {key} is {value!r}. Write "
                f"{'true or false' if types[key] is bool else 'a text, in quotes if a number'}."
            )
    try:
        artefact = Artefact(**entry)
    except TypeError as error:
        raise ConfigError(
            f"{where}: a key is missing. Write id, paper, kind, number, title and built."
        ) from error
    _check_entry(artefact, where)
    return artefact


def _check_entry(artefact: Artefact, where: str) -> None:
    for value, allowed, key in (
        (artefact.paper, PAPERS, "paper"),
        (artefact.kind, tuple(SUFFIXES), "kind"),
    ):
        if value not in allowed:
            raise ConfigError(f"{where}: {key} is {value!r}. Write one of {', '.join(allowed)}.")
    if not _NUMBER.fullmatch(artefact.number):
        raise ConfigError(
            f"{where}: number is {artefact.number!r}. Write it like 2, 2a, 7-26, or a name."
        )
    expected = f"{artefact.paper}_{artefact.stem}"
    if artefact.id != expected:
        raise ConfigError(f"{where}: the id does not follow from the entry. Write {expected}.")
    if not artefact.illustration and not _METRIC.fullmatch(artefact.metric):
        raise ConfigError(
            f"{where}: metric is {artefact.metric!r}. Write <experiment>/<metric> in lower case."
        )
    caption = f"workflow/report/{artefact.paper}/{artefact.stem}.rst"
    if artefact.built and (artefact.caption != caption or artefact.reason):
        raise ConfigError(
            f"{where}: a built artefact has a caption and no reason. Write caption: {caption}."
        )
    if not artefact.built and not artefact.reason:
        raise ConfigError(f"{where}: it is not built. Write the reason.")


def built_artefacts(artefacts: Iterable[Artefact], paper: str | None = None) -> list[Artefact]:
    """Return what the workflow makes, of one paper or of all, in registry order."""
    return [entry for entry in artefacts if entry.built and paper in (None, entry.paper)]


def missing_artefacts(artefacts: Iterable[Artefact], paper: str | None = None) -> list[Artefact]:
    """Return what the papers show and the workflow does not make yet, illustrations aside."""
    return [
        entry
        for entry in artefacts
        if not entry.built and not entry.illustration and paper in (None, entry.paper)
    ]
