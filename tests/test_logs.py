"""A user's error is one sentence; a fault of the workflow keeps its traceback."""

from __future__ import annotations

import logging

import pytest

from vlmfair.errors import RawDataError
from vlmfair.logs import rule_log


def test_messages_and_prints_go_to_the_log(tmp_path, capsys):
    with rule_log(tmp_path / "logs" / "rule.log"):
        logging.getLogger("vlmfair").info("12 images")
        print("hello")

    text = (tmp_path / "logs" / "rule.log").read_text()
    assert "INFO 12 images" in text
    assert "hello" in text
    assert capsys.readouterr().out == ""


def test_a_users_error_is_one_sentence_without_a_traceback(tmp_path, capsys):
    with pytest.raises(SystemExit) as stopped, rule_log(tmp_path / "rule.log"):
        raise RawDataError("data/fairface: the folder is missing. Download it.")

    assert stopped.value.code == 1
    sentence = "ERROR data/fairface: the folder is missing. Download it.\n"
    assert (tmp_path / "rule.log").read_text() == sentence
    assert capsys.readouterr().err == sentence


def test_a_fault_keeps_its_traceback(tmp_path):
    with pytest.raises(ZeroDivisionError), rule_log(tmp_path / "rule.log"):
        _ = 1 / 0
    assert "Traceback" in (tmp_path / "rule.log").read_text()


def test_a_full_disk_or_missing_permission_is_a_sentence_on_screen(tmp_path, capsys):
    with pytest.raises(SystemExit), rule_log(tmp_path / "rule.log"):
        raise OSError(28, "No space left on device", "results/x.parquet")
    shown = capsys.readouterr().err
    assert shown.startswith("ERROR results/x.parquet: No space left on device. Free space")
    assert shown.count("\n") == 1
    assert "Traceback" in (tmp_path / "rule.log").read_text()
