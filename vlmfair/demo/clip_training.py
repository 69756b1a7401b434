"""Trains the demo CLIP: images with captions, class names and attributes; answers with labels."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
import open_clip  # type: ignore[import-untyped]
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import CLIPVisionModel

from vlmfair.demo import encoder_captions as texts
from vlmfair.demo.clip_model import Tokens, build_clip, text_features
from vlmfair.demo.encoder_answers import LOGIT_SCALE, answer_loss, answer_sets, draw_answers
from vlmfair.demo.images import normalise
from vlmfair.demo.people import OCCUPATIONS
from vlmfair.demo.scenes import Scene
from vlmfair.demo.vision import warm_up_cosine
from vlmfair.papers.lvlm_fairness.questions import Prompts

LOGGER = logging.getLogger(__name__)

BATCH = 96
ANSWERS = 24
LEARNING_RATE, TOWER_RATE = 2e-3, 6e-4
# How often answers are drawn to learn which tokens occur in them.
VOCABULARY_DRAWS = 400
LABEL_WEIGHT, ATTRIBUTE_WEIGHT, ANSWER_WEIGHT = 0.5, 0.3, 0.5


class ClipTrainer:
    """Holds the images, what can be seen in each, and the model while it learns."""

    def __init__(
        self,
        tower: CLIPVisionModel,
        pool: NDArray[np.uint8],
        scenes: Sequence[Scene],
        prompts: Prompts,
        seed: int,
    ) -> None:
        torch.manual_seed(seed)
        self.rng = np.random.default_rng(seed)
        self.pool, self.scenes, self.prompts = pool, scenes, prompts
        self.facts = np.array([texts.scene_facts(scene) for scene in scenes])
        self.classes = prompts.answers("p1")
        self.answers = answer_sets(prompts, "clip_text")
        self.tokens = Tokens()
        self.model = build_clip(tower, self._known_tokens())

    def train(self, steps: int) -> open_clip.CLIP:
        """Take `steps` steps of one cosine and return the model."""
        tower = [p for p in self.model.visual.parameters() if p is not self.model.visual.proj]
        places = {id(parameter) for parameter in tower}
        others = [p for p in self.model.parameters() if p.requires_grad and id(p) not in places]
        groups = [{"params": tower, "lr": TOWER_RATE}, {"params": others, "lr": LEARNING_RATE}]
        optimizer = torch.optim.AdamW(groups, weight_decay=0.02)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: warm_up_cosine(n, steps))
        self.model.train()
        for step in range(steps):
            losses = self.losses()
            optimizer.zero_grad()
            torch.stack(list(losses.values())).sum().backward()
            nn.utils.clip_grad_norm_([*tower, *others], 1.0)
            optimizer.step()
            schedule.step()
            if step % 50 == 0 or step == steps - 1:
                told = ", ".join(f"{name} {loss.item():.3f}" for name, loss in losses.items())
                LOGGER.info("CLIP step %d of %d: %s", step, steps, told)
        return self.model.eval()

    def losses(self) -> dict[str, Tensor]:
        """The weighted losses of one batch of images and answers."""
        rows = self.rng.integers(len(self.scenes), size=BATCH)
        pixels = torch.from_numpy(normalise(self.pool[rows]))
        with torch.autocast("cpu", torch.bfloat16):
            images = self.model.visual(pixels)
        images = nn.functional.normalize(images.float(), dim=1)
        facts = self.facts[rows]
        losses = {
            "captions": self._captions(images, [self.scenes[row] for row in rows], facts),
            "labels": LABEL_WEIGHT * self._labels(images, facts),
            "attributes": ATTRIBUTE_WEIGHT * self._attributes(images, facts),
        }
        return losses | {"answers": ANSWER_WEIGHT * self._answers()}

    def _encode(self, wanted: Sequence[str]) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return text_features(self.model, self.tokens(wanted))

    def _captions(self, images: Tensor, scenes: Sequence[Scene], facts: NDArray) -> Tensor:
        """Both directions, over the captions of the batch and the altered copies of each."""
        drawn = [texts.draw_captions(scene, self.rng) for scene in scenes]
        unique = {caption.text: caption.facts for several in drawn for caption in several}
        fitting = torch.from_numpy(texts.fits(np.array(list(unique.values())), facts)).float()
        logits = LOGIT_SCALE * self._encode(list(unique)) @ images.T
        to_text = _shared_cross_entropy(logits.T, fitting.T)
        true = fitting.sum(dim=1) > 0
        return (to_text + _shared_cross_entropy(logits[true], fitting[true])) / 2

    def _labels(self, images: Tensor, facts: NDArray) -> Tensor:
        """Each image among the names of all classes, whether they are ever drawn or not."""
        places = [self.classes.index(name) for name in OCCUPATIONS]
        worn = facts[:, 1] > 0
        targets = torch.tensor([places[number - 1] for number in facts[worn, 1]])
        logits = (
            images[torch.from_numpy(worn)]
            @ self._encode(texts.label_texts(self.classes, self.rng)).T
        )
        return nn.functional.cross_entropy(LOGIT_SCALE * logits, targets)

    def _attributes(self, images: Tensor, facts: NDArray) -> Tensor:
        """Each image among the labels of each attribute; a hidden gender is left out."""
        labels = {name: texts.attribute_texts(name, self.rng) for name in texts.ATTRIBUTE_LABELS}
        features = self._encode([text for group in labels.values() for text in group])
        losses, start = [], 0
        for name, group in labels.items():
            targets = torch.from_numpy(facts[:, texts.FACTS.index(name)])
            told = targets < len(group)
            logits = LOGIT_SCALE * images[told] @ features[start : start + len(group)].T
            losses.append(nn.functional.cross_entropy(logits, targets[told]))
            start += len(group)
        return torch.stack(losses).mean()

    def _answers(self) -> Tensor:
        """Answers in words among the labels that a judge compares them with."""
        drawn = draw_answers(self.answers, ANSWERS, self.rng)
        wanted = [text for answers, said, _ in drawn for text in (*answers.candidates, *said)]
        return answer_loss(self._encode(wanted), drawn)

    def _known_tokens(self) -> Tensor:
        """The token ids of every text that may occur, from many draws of them."""
        rng = np.random.default_rng(0)
        said = {c.text for scene in self.scenes for c in texts.draw_captions(scene, rng)}
        for _ in range(VOCABULARY_DRAWS):
            said |= {
                text for _, drawn, _ in draw_answers(self.answers, ANSWERS, rng) for text in drawn
            }
            said |= set(texts.label_texts(self.classes, rng))
        said |= {text for answers in self.answers for text in answers.candidates}
        for labels in texts.ATTRIBUTE_LABELS.values():
            said |= {text for wordings in labels for text in wordings}
        return self.tokens(sorted(said)).unique()


def _shared_cross_entropy(logits: Tensor, fitting: Tensor) -> Tensor:
    """Cross entropy whose target is shared by all that fit."""
    targets = fitting / fitting.sum(dim=1, keepdim=True)
    return -(targets * torch.log_softmax(logits, dim=1)).sum(dim=1).mean()
