"""The rules by which a dataset is read, as the configuration and the command line name them."""

from __future__ import annotations

from collections.abc import Mapping

from vlmfair.errors import ConfigError

# The values of an option that takes any whole number, as a seed does.
WHOLE_NUMBER = ("0, 1, 2 ...",)


def check_options(
    dataset: str, known: Mapping[str, tuple[str, ...]], chosen: Mapping[str, str]
) -> None:
    """Raise ConfigError, naming what there is, on an unknown option or value of one."""
    for option, value in chosen.items():
        if option not in known:
            remedy = f"Use {', '.join(known)}." if known else "Leave it out."
            raise ConfigError(f"{dataset}: the dataset has no option {option}. {remedy}")
        numeric = known[option] is WHOLE_NUMBER
        if not (value.isascii() and value.isdecimal()) if numeric else value not in known[option]:
            raise ConfigError(
                f"{dataset}: {option} is {value!r}. Write one of {', '.join(known[option])}."
            )
