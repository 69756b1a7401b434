"""The table of what the paper's text, code and numbers say differently, and what is done here."""

from __future__ import annotations

import pandas as pd

from vlmfair.papers.lvlm_fairness.study import JUDGE_NAMES, Study
from vlmfair.render.deviations import Deviation, deviations_table
from vlmfair.render.tables import Table


def deviations(study: Study) -> tuple[Deviation, ...]:
    """Return every known deviation, in the order of the paper."""
    return (
        *(
            Deviation("Table 1", note, "The groups of the data are counted.")
            for note in study.count_notes
        ),
        *_of_methods(study),
        *_of_tables(study),
    )


def _of_methods(study: Study) -> tuple[Deviation, ...]:
    wrong = study.invalid == "wrong"
    return (
        Deviation(
            "Section 3.5",
            "Invalid answers are said to be excluded from recall; all 160 recalls of Table 2 are "
            "shares of the whole group.",
            ("Counted as wrong, as in the numbers" if wrong else "Left out, as in the text")
            + "; both are in the metrics (lvlm_fairness.invalid), and unparsed and refused answers "
            "have a table of their own.",
        ),
        Deviation(
            "Section 4.1, code",
            "ShareGPT4V and MiniCPM-V are sampled (T = 0.2 and 0.7) without a seed, so that their "
            "numbers are one draw.",
            "Every model answers greedily; one behind a server at the temperature of its entry, "
            "which is 0 unless it says otherwise.",
        ),
        Deviation(
            "Section 4.3",
            "The prompts for UTKFace are called single-choice; appendix A.2 and the code have "
            "direct questions.",
            "Direct questions.",
        ),
        Deviation(
            "Appendix A.1, code",
            "p2 is the main single choice; the released script for LLaVA asks p3.",
            f"{study.choice} for every model; prompt_style released sends the frames of the "
            "scripts.",
        ),
        Deviation(
            "Appendix A.3",
            "CLIP’s encoder is said to feed the main tables. The direct half of Table 2 is that of "
            "CLIP, the single-choice half that of the regular expression for 7 of 9 models. The "
            "released script gives CLIP only the first character of an answer.",
            f"One reader for all: {JUDGE_NAMES.get(study.table_judge, study.table_judge)} "
            "(lvlm_fairness.table_judge). Encoders read the whole answer.",
        ),
        Deviation(
            "Appendix A.4",
            "How the votes for ten Monk tones become one of three groups is not said.",
            "A named rule, datasets.facet.tone_rule.",
        ),
    )


def _of_tables(study: Study) -> tuple[Deviation, ...]:
    return (
        Deviation(
            "Tables 3 and 8",
            "ShareGPT4V (34B) is the 13B model; no other size was measured.",
            "Models bear the names of the sheet of models.",
        ),
        Deviation(
            "Table 4",
            "Four percentages differ from those of the unrounded numbers by up to 0.06.",
            "Computed before rounding.",
        ),
        Deviation(
            "Tables 9 to 11",
            "Llama-3.2-V is left out.",
            "Every model is shown.",
        ),
        Deviation(
            "Table 11",
            "Young minus Old is near 1 for skateboarder and student in every model: the recall of "
            "a group without images was taken as 0.",
            f"A disparity with an empty group is not given; one with fewer than "
            f"{study.small_cell} images is marked.",
        ),
        Deviation(
            "Table 12",
            "Titled model accuracy; it holds gender disparities.",
            "Titled as what it holds.",
        ),
        Deviation(
            "Table 13",
            "F1 is that of belonging to the group and being right, which follows the size of the "
            "group, not the F1 of a classifier.",
            "Shown as published, with the macro F1 over the classes beside it.",
        ),
    )


def build_deviations(metrics: pd.DataFrame, study: Study) -> Table:
    """What differs between the paper's text, code and numbers, and what is done here."""
    return deviations_table(
        deviations(study),
        title="Where text, code and numbers of the paper differ",
        widths=(0.65, 2.0, 1.55),
        note="What follows from the printed numbers is recomputed by “snakemake audit”, which "
        "lists every statement that was checked.",
    )
