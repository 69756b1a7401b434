"""The errors a user may see: one sentence of what is wrong and one of what to do."""

from __future__ import annotations


class VlmfairError(Exception):
    """Base of every error that is the user's to solve; its message says how."""


class ConfigError(VlmfairError):
    """A configuration file names something that does not exist or leaves something out."""


class RawDataError(VlmfairError):
    """A raw dataset is missing, incomplete, or not in its as-distributed format."""


class RetrievalError(VlmfairError):
    """A download failed, was refused, or is not what was announced."""


class ContractError(VlmfairError):
    """A table between two steps breaks its schema, misses a row, or has one twice."""


class ModelError(VlmfairError):
    """A model folder cannot be loaded, or its tokenizer does not give the ids a paper states."""


class InferenceError(VlmfairError):
    """A model gave numbers that are not numbers, or an answer that cannot be stored."""


class TypesettingError(VlmfairError):
    """LaTeX is not installed, or it does not take a table."""


def reason_of(error: BaseException) -> str:
    """Return what another library's error says, on one line and without its full stop.

    It is put into a sentence that goes on. An error without a message gives its type's name.
    """
    text = " ".join(str(error).split()).rstrip(".")
    return text or type(error).__name__
