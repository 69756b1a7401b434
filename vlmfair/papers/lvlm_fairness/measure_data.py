"""The numbers of evaluated images by group as metric rows (Table 1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from vlmfair.papers.lvlm_fairness.measure_recall import ALL
from vlmfair.papers.lvlm_fairness.measure_rows import ATTRIBUTES, GROUPS, PAPER
from vlmfair.papers.lvlm_fairness.plan import evaluated_people
from vlmfair.papers.lvlm_fairness.questions import OCCUPATIONS
from vlmfair.stats.metric_rows import MetricRows


def measure_data(samples: Mapping[str, pa.Table]) -> pa.Table:
    """Return the numbers of images by group (Table 1) as METRICS rows of the model `all`.

    Of FACET those that are evaluated count, of UTKFace all.
    """
    rows = MetricRows(paper=PAPER, model=ALL, experiment="data", item=ALL)
    for dataset, table in samples.items():
        people = evaluated_people(table) if dataset == "facet" else table.to_pylist()
        total = len(people)
        place = rows.at(dataset=dataset)
        place.at(attribute=ALL, group=ALL).add("images", value=total, n=total)
        for attribute in ATTRIBUTES[dataset]:
            for group in GROUPS[attribute]:
                count = sum(person[attribute] == group for person in people)
                place.at(attribute=attribute, group=group).add("images", value=count, n=total)
        if dataset == "facet":
            _add_occupations(place, people)
    return rows.table()


def _add_occupations(place: MetricRows, people: Sequence[Mapping[str, str]]) -> None:
    for occupation in OCCUPATIONS:
        own = [person for person in people if person["occupation"] == occupation]
        here = place.at(item=occupation)
        here.at(attribute=ALL, group=ALL).add("images", value=len(own), n=len(people))
        for attribute in ATTRIBUTES["facet"]:
            for group in GROUPS[attribute]:
                count = sum(person[attribute] == group for person in own)
                here.at(attribute=attribute, group=group).add("images", value=count, n=len(people))
