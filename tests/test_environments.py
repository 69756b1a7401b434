"""One source of versions: requirements.lock. What repeats a pin must agree with it."""

from __future__ import annotations

import re

import pytest
import yaml

PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;]+)$")


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(lines) -> dict[str, str]:
    found = {}
    for line in lines:
        if line.strip() and not line.startswith("#"):
            match = PIN.match(line.strip())
            assert match, f"not an exact pin: {line!r}"
            found[normal(match[1])] = match[2]
    return found


@pytest.fixture(scope="module")
def lock(root) -> dict[str, str]:
    return pins((root / "requirements.lock").read_text().splitlines())


def test_the_lock_pins_everything_that_is_asked_for(root, lock):
    asked = {
        normal(re.split(r"[\[=<>]", line)[0])
        for line in (root / "requirements.in").read_text().split("\n")
        if line and not line.startswith("#")
    }
    assert asked <= set(lock)
    assert (lock["torch"], lock["torchvision"]) == ("2.14.1", "0.29.1")


@pytest.mark.parametrize("name", ["analysis", "inference"])
def test_conda_environments_repeat_the_lock(root, lock, name):
    env = yaml.safe_load((root / f"envs/{name}.yaml").read_text())
    pip = next(entry["pip"] for entry in env["dependencies"] if isinstance(entry, dict))
    drifted = {key: (value, lock.get(key)) for key, value in pins(pip).items()}
    assert {key: pair for key, pair in drifted.items() if pair[0] != pair[1]} == {}
    assert "nodefaults" in env["channels"]


def test_every_rule_names_an_environment_that_exists(root):
    for rules in sorted((root / "workflow/rules").glob("*.smk")):
        for path in re.findall(r'conda:\s+"([^"]+)"', rules.read_text()):
            assert (rules.parent / path).resolve().is_file(), f"{rules.name}: {path}"
