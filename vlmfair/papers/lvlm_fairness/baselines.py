"""The baselines of Table 2, CLIP zero-shot and a ViT classifier, on the occupations of FACET."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from PIL import Image
from tqdm import tqdm

from vlmfair.errors import ModelError
from vlmfair.inference.images import UnreadableImageError, open_image
from vlmfair.models.chat import ImageRef
from vlmfair.models.encoders import ClipEncoder
from vlmfair.papers.lvlm_fairness.judge import classifier_judgements
from vlmfair.papers.lvlm_fairness.judges import CLASSIFIER
from vlmfair.papers.lvlm_fairness.plan import evaluated_people
from vlmfair.papers.lvlm_fairness.questions import Classes, Prompts
from vlmfair.provenance import content_id

BATCH = 32
Classify = Callable[[Sequence[Image.Image]], list[str]]


def clip_zero_shot(
    samples: pa.Table, encoder: ClipEncoder, prompts: Prompts, classes: Classes, *, name: str
) -> pa.Table:
    """Return judgements of the class, of 52, whose text is nearest to each image.

    The texts are "a photo of a {class}" with underscores, as the released code writes them for
    its answers. Raises ContractError as `classify_people`.
    """
    texts = [prompts.zero_shot.replace("{label}", label) for label in classes.all]
    candidates = encoder.encode_texts(texts)

    def classify(images: Sequence[Image.Image]) -> list[str]:
        nearest = np.argmax(encoder.encode_images(images) @ candidates.T, axis=1)
        return [classes.all[place] for place in nearest]

    return classify_people(samples, classify, name=name)


def vit_classifier(
    samples: pa.Table,
    folder: str,
    wordnet: Mapping[str, str],
    *,
    name: str,
    device: str = "cpu",
) -> pa.Table:
    """Return judgements of the most probable of a classifier's labels that stand for a class.

    `folder` holds an image classifier in Hugging Face format, trained on ImageNet-21k, whose labels
    are WordNet's; `wordnet` maps synsets and labels to FACET's classes, which were taken from
    WordNet. All other labels are left out of the comparison. Raises ModelError when the folder is
    missing or none of its labels is in the map.
    """
    return classify_people(samples, _open_classifier(folder, wordnet, device), name=name)


def _open_classifier(folder: str, wordnet: Mapping[str, str], device: str) -> Classify:
    from transformers import AutoImageProcessor, AutoModelForImageClassification

    if not Path(folder).is_dir():
        raise ModelError(
            f"the classifier {folder} is not downloaded. Run: hf download "
            f"timm/vit_base_patch16_224.augreg_in21k --local-dir {folder}, or name another folder."
        )
    try:
        processor = AutoImageProcessor.from_pretrained(folder, local_files_only=True)
        model = AutoModelForImageClassification.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError) as error:
        raise ModelError(
            f"the classifier {folder} cannot be loaded: {' '.join(str(error).split())}. "
            f"Download it again."
        ) from error
    model.to(device).eval()
    labels = {int(place): str(label) for place, label in model.config.id2label.items()}
    places = [place for place, label in sorted(labels.items()) if label in wordnet]
    if not places:
        raise ModelError(
            f"the classifier {folder} has no label of WordNet's people (its first is "
            f"{labels.get(0, '')!r}). Use one that was trained on ImageNet-21k."
        )

    def classify(images: Sequence[Image.Image]) -> list[str]:
        inputs = processor(images=list(images), return_tensors="pt").to(device)
        with torch.inference_mode():
            logits = model(**inputs).logits[:, places]
        return [wordnet[labels[places[best]]] for best in logits.argmax(dim=1).tolist()]

    return classify


def classify_people(samples: pa.Table, classify: Classify, *, name: str) -> pa.Table:
    """Return JUDGEMENTS rows, judge `classifier`, of a function from images to class names.

    The people are those that models are asked about. An image that cannot be read gives a row
    with status `error`.
    """
    people = evaluated_people(samples)
    predicted: list[str | None] = []
    for start in tqdm(range(0, len(people), BATCH), desc=name, mininterval=5):
        opened = [_open(row) for row in people[start : start + BATCH]]
        readable = [image for image in opened if image is not None]
        named = iter(classify(readable) if readable else ())
        predicted += [None if image is None else next(named) for image in opened]
    ids = [content_id("baseline", name, row["sample_id"], row["image_sha256"]) for row in people]
    return classifier_judgements(people, predicted, request_ids=ids, judge=CLASSIFIER)


def _open(row: Mapping[str, Any]) -> Image.Image | None:
    try:
        return open_image(ImageRef(row["image"], row["image_sha256"]))
    except UnreadableImageError:
        return None
