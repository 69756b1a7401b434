"""The citation file states this version and the papers that are regenerated."""

from __future__ import annotations

from pathlib import Path

import yaml

import vlmfair


def test_citation_file_is_of_this_version(root: Path) -> None:
    citation = yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))
    changes = (root / "CHANGELOG.md").read_text(encoding="utf-8")

    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == vlmfair.__version__
    assert f"## [{vlmfair.__version__}]" in changes


def test_citation_file_names_the_three_papers(root: Path) -> None:
    citation = yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))

    titles = [reference["title"].split(":")[0] for reference in citation["references"]]
    assert titles[:3] == [
        "Ask Me Again Differently",
        "Evaluating Fairness in Large Vision-Language Models Across Diverse Demographic Attributes "
        "and Prompts",
        "Gender Bias in Vision-Language In-Context Learning",
    ]
    assert all(reference["authors"] for reference in citation["references"])
