"""What the settings of this paper imply: its experiments, and the encoders that a run needs.

Standard library only: the Snakefile imports it at every parse.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vlmfair.errors import ConfigError

# The dataset whose images each experiment shows; the generation of sub-questions shows none.
DATASET_OF = {
    "facet": "facet",
    "utkface": "utkface",
    "sub_questions": "facet",
    "rationale": "facet",
}
# The experiments whose answers are right or wrong.
JUDGED = ("facet", "utkface", "rationale")
GENERATION = "generation"
DIRECT = "p1"
BASELINES = {"clip": "CLIP", "vit": "ViT"}
# Files of metrics that belong to no model of the sheet.
_TAKEN = (*BASELINES, "data")
# The key of `encoders` that names the files of each judge and baseline which has some.
_FILES_OF = {
    "clip_text": ("clip_text", "model"),
    "sentence_t5": ("sentence_t5", "path"),
    "clip": ("clip_text", "model"),
    "vit": ("vit", "path"),
}


def check_settings(settings: Mapping[str, Any]) -> None:
    """Check the section lvlm_fairness of a config that its schema has passed.

    Raises ConfigError when the tables show a judge that is not run, an encoder that is needed has
    no files named, or a model has a name that files of something else have.
    """
    if settings["table_judge"] not in settings["judges"]:
        raise ConfigError(
            f"config: lvlm_fairness.table_judge is {settings['table_judge']}, which is not among "
            f"lvlm_fairness.judges. Write one of {', '.join(settings['judges'])}, or add it there."
        )
    for user in (*settings["judges"], *settings["baselines"]):
        encoder, key = _FILES_OF.get(user, ("", ""))
        if encoder and not settings["encoders"][encoder].get(key):
            raise ConfigError(
                f"config: lvlm_fairness.encoders.{encoder}: {key} is missing, and {user} needs it. "
                f"Write {key}: <folder of the encoder's files>, or leave {user} out."
            )
    for model in settings["models"]:
        if model in _TAKEN:
            raise ConfigError(
                f"config: lvlm_fairness.models: the workflow calls something else {model}. "
                f"Give the model another name in the sheet of models."
            )


def encoder_files(user: str, settings: Mapping[str, Any]) -> str:
    """Return the folder or file with the weights of a judge or baseline; "" if it has none.

    CLIP may be an architecture of open_clip with a file of weights instead of a folder.
    """
    if user not in _FILES_OF:
        return ""
    encoder, key = _FILES_OF[user]
    own = settings["encoders"][encoder]
    return str(own.get("weights") or own.get(key) or "")


def missing_encoders(users: Sequence[str], settings: Mapping[str, Any], root: Path) -> str:
    """Return one sentence on the encoders of judges and baselines that lack files; "" if none does.

    Paths are relative to `root`.
    """
    wanted = {encoder_files(user, settings): user for user in users if user in _FILES_OF}
    missing = sorted(path for path in wanted if not (root / path).exists())
    if not missing:
        return ""
    named = ", ".join(f"{path} (for {wanted[path]})" for path in missing)
    return (
        f"config: lvlm_fairness.encoders: {len(missing)} of {len(wanted)} encoders are not there: "
        f"{named}. Download them (docs/lvlm_fairness.md has the commands), or leave out the judges "
        f"and baselines that need them."
    )
