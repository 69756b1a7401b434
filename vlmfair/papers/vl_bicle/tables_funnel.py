"""The table of funnels: how many records of each dataset every filter of appendix 0.A leaves."""

from __future__ import annotations

import pandas as pd

from vlmfair.errors import ContractError
from vlmfair.papers.vl_bicle.study import Study
from vlmfair.render.numbers import format_count
from vlmfair.render.tables import Column, Table

_TITLES = {
    "visogender": "VisoGender",
    "coco_bias": "COCOBias",
    "dci": "DCI",
    "visual_cot": "VisualCoT",
}
_STEPS = {"pool": "demonstration pool", "queries": "queries"}


def build_funnels(metrics: pd.DataFrame, study: Study) -> Table:
    """Records of each dataset after each filter, and the reasons of those left out."""
    if not study.funnels:
        raise ContractError(
            "the study has no funnels of datasets. Prepare the datasets of vl_bicle again."
        )
    names = [name for name in _TITLES if name in study.funnels]
    data = pd.concat([study.funnels[name].assign(dataset=name) for name in names])
    return Table(
        title="Records of each dataset after each filter",
        data=data,
        columns=(
            Column("Dataset", align="left"),
            Column("Records", align="left"),
            Column("Left out"),
            Column("Left"),
            Column("Male"),
            Column("Female"),
        ),
        rows=tuple(
            (
                _TITLES[str(row["dataset"])],
                _STEPS.get(str(row["step"]), str(row["step"])),
                *(
                    format_count(float(row[name]))
                    for name in ("left_out", "left", "male", "female")
                ),
            )
            for row in data.to_dict("records")
        ),
        notes=(
            "Filters of appendix 0.A, in their order. Filters that left out nothing are listed, "
            "too. The csv file has the reasons of each filter; the problems of a dataset name "
            "every record that was left out. Men and women are counted in the two splits.",
        ),
        stubs=2,
    )
