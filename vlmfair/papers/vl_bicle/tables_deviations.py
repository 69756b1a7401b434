"""The table of what the paper leaves open or says differently, and what is done here."""

from __future__ import annotations

import pandas as pd

from vlmfair.papers.vl_bicle.study import Study
from vlmfair.render.deviations import Deviation, deviations_table
from vlmfair.render.tables import Table


def deviations(study: Study) -> tuple[Deviation, ...]:
    """Return every known deviation, in the order of the paper."""
    return (*_of_demonstrations(study), *_of_data(study), *_of_measures(study), *_of_study(study))


def _of_demonstrations(study: Study) -> tuple[Deviation, ...]:
    return (
        Deviation(
            "Section 3.2",
            "Which caption of an image is compared with the query in SITR is not said.",
            "The caption that the demonstration shows.",
        ),
        Deviation(
            "Section 3.2, 4.1",
            "The CLIP of retrieval and CLIPScore is called frozen, without its name.",
            f"{study.clip_backbone or 'the CLIP of the config'} for both (vl_bicle.encoder).",
        ),
        Deviation(
            "Section 4, appendix 0.E",
            "Sequences are drawn at random; the drawing was not published.",
            "Drawn by a seed (vl_bicle.seed) from SHA-256, equal on every machine. k "
            "demonstrations are the first k of the sequence.",
        ),
        Deviation(
            "Section 4.1",
            "The balanced pool is drawn down at random, how often is not said.",
            "One drawing, by the same seed.",
        ),
    )


def _of_data(study: Study) -> tuple[Deviation, ...]:
    return (
        Deviation(
            "Table 5",
            "The extended list of gender words is not in the text.",
            f"The list “{study.word_list}” (vl_bicle.words) of resources/words, with phrases that "
            "are taken out first.",
        ),
        Deviation(
            "Appendix 0.A.1",
            "20 of 690 photographs could not be reached; which ones is not said.",
            "Whatever photographs are there; each that is missing is listed and counted.",
        ),
        Deviation(
            "Appendix 0.A",
            "An image may be in the pool and among the queries, if it is there twice.",
            "No picture is on both sides: pool and queries are disjoint by the bytes of images.",
        ),
        Deviation(
            "Appendix 0.A.2",
            "A caption with gender words is selected for the demonstration; which one is open.",
            "The first one in the order of the file that names this gender only.",
        ),
        Deviation(
            "Appendix 0.A.4",
            "The words with a neutral equivalent are given by examples.",
            "A list of 12 words (resources/words); questions with any other gender word are left "
            "out.",
        ),
        Deviation(
            "Appendix 0.C.3",
            "Zero-shot questions follow a non-human example, which is not named.",
            "One record without people, drawn by the seed of the split; the same for all queries.",
        ),
    )


def _of_measures(study: Study) -> tuple[Deviation, ...]:
    limits = ", ".join(f"{name} {limit}" for name, limit in study.max_new_tokens.items())
    judge = f"Here: {study.judge_text}."
    return (
        Deviation(
            "Section 3.4",
            "Which BLEU-4 is meant is not said.",
            "sacreBLEU over all captions, with every reference of an image; its signature stands "
            "below the tables that show it.",
        ),
        Deviation(
            "Section 3.4, 4.1",
            "CLIPScore has means between 25 and 35: 100 times the cosine, not the 2.5 of its "
            "authors.",
            "100 max(cos, 0) of image and caption, without the prefix “A photo depicts”.",
        ),
        Deviation(
            "Section 3.4",
            "Whether the average length counts words or tokens is not said.",
            "Words between spaces.",
        ),
        Deviation(
            "Section 4",
            "Which standard deviation stands behind ± is not said.",
            "That of a sample, n − 1 in its denominator.",
        ),
        Deviation(
            "Section 4",
            "The longest answer is not said.",
            f"vl_bicle.max_new_tokens{f' (here: {limits})' if limits else ''}. Answers are greedy.",
        ),
        Deviation(
            "Section 4, appendix 0.F",
            "GPT-OSS-20B scores the answers; what becomes of a reply without a score is not said.",
            f"No verdict is no zero: it is counted and left out. {judge}",
        ),
        Deviation(
            "Appendix 0.C",
            "Prompts are printed with User and Asst.",
            "The texts as printed, in the chat format of each model.",
        ),
    )


def _of_study(study: Study) -> tuple[Deviation, ...]:
    return (
        Deviation(
            "Section 4.1",
            "Of six models one keeps its sign between COCOBias and DCI and three change it. That "
            "leaves two which can only have a difference of 0.",
            "The finding is tested by signs, as written.",
        ),
        Deviation(
            "Section 4.1",
            "Findings such as “consistently” or “comparable” have no test and no interval.",
            "Each has a stated rule in the table of findings, a sign test over models where it is "
            "a direction, and Benjamini and Hochberg’s correction; every number has a bootstrap "
            "interval.",
        ),
        Deviation(
            "Section 5",
            "Four of the six models are shown drawn images; the text does not name them.",
            "vl_bicle.synthesis.models"
            + (f": {', '.join(map(study.title, study.mitigated))}." if study.sources else "."),
        ),
        Deviation(
            "Section 5",
            "Steps, guidance, size, seed and version of the generators are not in the text.",
            "Options of vl_bicle.synthesis.generators; the seed of an image follows from its "
            "caption.",
        ),
        Deviation(
            "Section 5",
            "Captions whose image a generator refuses are not spoken of.",
            "Such a caption is left out of the demonstrations of all sources, photographs too, so "
            "that only the images differ.",
        ),
    )


def build_deviations(metrics: pd.DataFrame, study: Study) -> Table:
    """What the paper leaves open or contradicts, and what is done here."""
    return deviations_table(
        deviations(study),
        title="What the paper leaves open, and what is done here",
        widths=(0.75, 1.8, 1.8),
        note="No code or data of the authors was found; appendix and tables are known as far as "
        "the text prints them.",
    )
