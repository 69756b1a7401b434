"""Captions: Jinja fills in the configuration, reStructuredText becomes HTML."""

from __future__ import annotations

from pathlib import Path

import pytest

from vlmfair.artefacts import load_artefacts
from vlmfair.config import read_yaml
from vlmfair.errors import ConfigError
from vlmfair.render.captions import caption_html


def write(folder: Path, text: str) -> Path:
    path = folder / "caption.rst"
    path.write_text(text, encoding="utf-8")
    return path


def test_markup_and_configuration_are_filled_in(tmp_path: Path) -> None:
    path = write(tmp_path, '**Score** at {{ snakemake.config["gras"]["alpha"] }}.')
    html = caption_html(path, {"gras": {"alpha": 0.05}})
    assert html.strip() == "<p><strong>Score</strong> at 0.05.</p>"


def test_text_that_looks_like_html_is_escaped(tmp_path: Path) -> None:
    html = caption_html(write(tmp_path, "a <script> & b"), {})
    assert "&lt;script&gt; &amp; b" in html


@pytest.mark.parametrize(
    "text",
    [
        '{{ snakemake.config["gras"]["alhpa"] }}',
        "{{ nothing }}",
        "{% if %}",
        "*not closed",
        ".. raw:: html\n\n   <script></script>",
        ".. include:: /etc/hostname",
    ],
)
def test_a_caption_that_cannot_be_read_is_named(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match=r"caption\.rst: the caption cannot be read"):
        caption_html(write(tmp_path, text), {"gras": {"alpha": 0.05}})


def test_a_missing_caption_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="the caption is missing. Write it"):
        caption_html(tmp_path / "no.rst", {})


def test_every_caption_of_a_built_artefact_can_be_read(root: Path) -> None:
    config = read_yaml(root / "config" / "config.yaml")
    captions = {
        artefact.id: caption_html(root / artefact.caption, config)
        for artefact in load_artefacts(root / "config" / "artefacts.yaml")
        if artefact.built
    }
    assert captions
    assert all(html.startswith("<p>") for html in captions.values())
