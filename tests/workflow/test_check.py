"""`snakemake check` lists what is there, and fails where it is not what the papers used."""

from __future__ import annotations

import re

import pandas as pd
import pytest

pytestmark = pytest.mark.workflow


def checklist_of(project, suite):
    path = project.folder / f"results/{suite}/check.csv"
    return pd.read_csv(path, dtype=object, keep_default_na=False)


def test_drawn_datasets_are_listed_without_a_verdict(finished):
    shown = finished.snakemake("check")

    assert "| fairface   | results/demo/raw/fairface   | yes       | yes   |" in shown
    checklist = checklist_of(finished, "demo")
    datasets = checklist[checklist["found"] != ""].set_index("dataset")
    asked = datasets[datasets["asked_for"] == "yes"]
    assert {"fairface", "ai_face", "facet", "utkface"} <= set(asked.index)
    assert set(asked["found"]) == {"yes"}
    # The demo draws one image of each dataset that is missing.
    lacking = asked["expected"].astype(int) - asked["images"].astype(int)
    assert lacking["fairface"] == lacking["facet"] == 1
    assert set(checklist["verdict"]) == {""}
    assert finished.planned_rules("check") == {"check"}, "a second look reads nothing again"


def test_a_download_that_is_not_as_published_fails_and_the_list_stays(finished):
    """The drawn files, given as a real download of which UTKFace is missing."""
    raw = {
        name: {"raw": f"results/demo/raw/{name}" if name != "utkface" else "data/utkface"}
        for name in ("fairface", "ai_face", "facet", "utkface")
    }
    real = finished.with_settings(
        suite="real", drawn_seed=None, datasets=raw, gras={"selection_lists": "data/gras"}
    )

    shown = real.snakemake("check", check=False)

    says = (
        r"missing: fairface, ai_face, utkface; without some images: facet \(\d+ of \d+\).*; "
        r"not as a paper counts them: facet all all \(\d+ for 5481\), facet .* and \d+ more\. "
        r"Do what results/real/check\.md says"
    )
    assert re.search(says, shown)
    assert "Traceback" not in shown
    checklist = checklist_of(finished, "real")
    steps = checklist[checklist["found"] != ""].set_index("dataset")["next_step"]
    assert "Run snakemake --cores all retrieve_gras_lists" in steps["fairface"], "its list"
    assert steps["utkface"].startswith("Download part1.tar.gz")
    assert "tone_counts" in steps["facet"]
    males = checklist[(checklist["dataset"] == "facet") & (checklist["group"] == "Male")].iloc[0]
    assert (males["expected"], males["counted"], males["verdict"]) == ("3821", "40", "differs")
