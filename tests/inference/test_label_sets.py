"""The answers to score are listed in the prompts file, by what they mean."""

from __future__ import annotations

import pytest

from vlmfair.errors import ConfigError
from vlmfair.inference.label_sets import load_label_sets
from vlmfair.papers.gras.questions import load_prompts


def test_forms_come_meaning_by_meaning_in_file_order(tmp_path):
    path = tmp_path / "prompts.yaml"
    path.write_text('label_sets: {pronoun: {male: [" his"], female: [" her", " hers"]}}')

    assert load_label_sets(path) == {"pronoun": (" his", " her", " hers")}


def test_the_labels_of_gras_are_those_that_its_judge_reads(root):
    path = root / "resources/prompts/gras.yaml"
    assert load_label_sets(path) == {"yes_no": load_prompts(path).labels}


def test_a_file_without_label_sets_says_what_to_do(tmp_path):
    path = tmp_path / "prompts.yaml"
    path.write_text("templates: []")
    with pytest.raises(ConfigError, match="label_sets is missing. List the answers to score there"):
        load_label_sets(path)
