"""One source of versions for each environment: its lock. What repeats a pin must agree with it."""

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


def read_lock(root, name: str) -> dict[str, str]:
    return pins((root / f"{name}.lock").read_text().splitlines())


def asked_for(root, name: str) -> set[str]:
    return {
        normal(re.split(r"[\[=<>]", line)[0])
        for line in (root / f"{name}.in").read_text().split("\n")
        if line and not line.startswith("#")
    }


def pip_pins(root, name: str) -> dict[str, str]:
    env = yaml.safe_load((root / f"envs/{name}.yaml").read_text())
    assert "nodefaults" in env["channels"]
    assert "python=3.11" in env["dependencies"]
    return pins(next(entry["pip"] for entry in env["dependencies"] if isinstance(entry, dict)))


@pytest.mark.parametrize("name", ["requirements", "requirements-legacy"])
def test_the_lock_pins_everything_that_is_asked_for(root, name):
    lock = read_lock(root, name)

    assert asked_for(root, name) <= set(lock)
    assert (lock["torch"], lock["torchvision"]) == ("2.14.1", "0.29.1")


@pytest.mark.parametrize(
    ("name", "lock"),
    [
        ("analysis", "requirements"),
        ("inference", "requirements"),
        ("inference-legacy", "requirements-legacy"),
        ("synthesis", "requirements"),
    ],
)
def test_conda_environments_repeat_the_lock(root, name, lock):
    known = read_lock(root, lock)
    drifted = {key: (value, known.get(key)) for key, value in pip_pins(root, name).items()}
    assert {key: pair for key, pair in drifted.items() if pair[0] != pair[1]} == {}


def test_the_older_environment_has_all_that_is_asked_for_and_an_older_transformers(root):
    assert set(pip_pins(root, "inference-legacy")) == asked_for(root, "requirements-legacy")

    lock, legacy = read_lock(root, "requirements"), read_lock(root, "requirements-legacy")
    # What transformers 4.44.2 declares: tokenizers>=0.19,<0.20 and huggingface-hub<1.0.
    assert legacy["transformers"] == "4.44.2"
    assert legacy["tokenizers"].startswith("0.19.")
    assert legacy["huggingface-hub"].startswith("0.")
    # Images and tables are read by the same versions, whichever model is asked.
    for name in ("numpy", "pandas", "pillow", "pyarrow", "safetensors", "torch", "torchvision"):
        assert legacy[name] == lock[name], name


def test_every_rule_names_an_environment_that_exists(root):
    for rules in sorted((root / "workflow/rules").glob("*.smk")):
        for path in re.findall(r'conda:\s+"([^"]+)"', rules.read_text()):
            assert (rules.parent / path).resolve().is_file(), f"{rules.name}: {path}"
