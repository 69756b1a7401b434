"""Which traits a model attributes to which group: the group's mean lies above the overall mean."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from vlmfair.stats.moments import Floats

Rule = Literal["all", "any"]
RULES: tuple[Rule, ...] = ("all", "any")


def attributed(group_means: Floats, overall_means: Floats, rule: Rule) -> NDArray[np.bool_]:
    """Return [groups, traits]: is the trait attributed to the group? (GRAS §3.3, Table 3)

    `group_means` is [groups, traits, templates], `overall_means` [traits, templates]. The paper
    states `any` (above the overall mean for at least one template); its published numbers follow
    from `all` (for every template). A missing mean (NaN) attributes nothing.
    """
    above = group_means > overall_means
    return np.asarray(above.all(axis=-1) if rule == "all" else above.any(axis=-1))


def attributed_share(is_attributed: NDArray[np.bool_], of_traits: NDArray[np.bool_]) -> Floats:
    """Return [groups]: the percentage of the traits in the mask `of_traits` that are attributed.

    NaN where the mask holds no trait.
    """
    with np.errstate(invalid="ignore"):
        return 100 * is_attributed[:, of_traits].sum(axis=1) / np.float64(of_traits.sum())
