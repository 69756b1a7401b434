"""What GRAS asks a model: every trait in every wording about every image (section 3.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vlmfair.cost.amounts import of_group
from vlmfair.cost.assumptions import Assumptions
from vlmfair.cost.parts import Part
from vlmfair.cost.subject import Subject
from vlmfair.cost.tokens import asked_text, pieces
from vlmfair.papers.gras.questions import Prompts, Trait

PAPER = "gras"


def gras_parts(
    subject: Subject,
    prompts: Prompts,
    traits: Sequence[Trait],
    style: str,
    images: Mapping[str, int],
    assumptions: Assumptions,
    *,
    announced: bool,
) -> list[Part]:
    """Return a part for each dataset; `images` are their numbers of images.

    Raises ConfigError on a style or family that GRAS has no prompt for.
    """
    texts = [
        prompts.user_text(subject.family, style, trait.word, template)
        for trait in traits
        for template in range(1, len(prompts.templates) + 1)
    ]
    raw = prompts.wrapping[subject.family] != "chat_template"
    parts = []
    for dataset, number in images.items():
        load = subject.image(dataset, assumptions.image_sizes)
        asked = [
            pieces(subject.tokenizer, asked_text(subject.family, text, raw=raw), load.tokens)
            for text in texts
        ]
        amounts = of_group(asked, 0, subject.sharing()).times(number)
        parts.append(Part(PAPER, dataset, subject.name, load, amounts, True, announced))
    return parts
