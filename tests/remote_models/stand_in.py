"""Small models with the interfaces of four checkpoints that bring their own code.

The names, arguments and side effects are those of the published code of Qwen-VL-Chat,
Phi-3.5-vision-instruct and MiniCPM-V/o 2.6; what happens inside is a running mean and two matrices.
A checkpoint's folder holds a copy of this file, which transformers loads as its remote code.
"""

from __future__ import annotations

import json
import re

import torch
from PIL import Image
from torch import nn
from transformers import PretrainedConfig, PreTrainedModel

HIDDEN = 16


class StandInConfig(PretrainedConfig):
    model_type = "stand_in"

    def __init__(self, **settings):
        self.vocab_size = settings.pop("vocab_size", 300)
        self.hidden_size = settings.pop("hidden_size", HIDDEN)
        self.max_position_embeddings = settings.pop("max_position_embeddings", 2048)
        # Of MiniCPM-o: which parts are built.
        for part in ("init_vision", "init_audio", "init_tts"):
            setattr(self, part, settings.pop(part, True))
        super().__init__(**settings)


class Decoder(nn.Module):
    """A causal language model: each position sees the mean of those up to it."""

    def __init__(self, vocabulary):
        super().__init__()
        self.embed_tokens = nn.Embedding(vocabulary, HIDDEN)
        self.mix = nn.Linear(HIDDEN, HIDDEN)
        self.lm_head = nn.Linear(HIDDEN, vocabulary)

    def forward(self, inputs_embeds):
        counts = torch.arange(1, inputs_embeds.shape[1] + 1)[None, :, None]
        mean = inputs_embeds.cumsum(1) / counts
        return self.lm_head(torch.tanh(self.mix(mean + inputs_embeds)))


class Output:
    def __init__(self, logits):
        self.logits = logits


def greedy(step, start, generation_config):
    """Append the likeliest token until an end token or the limit, as `generate` does."""
    found = []
    ends = generation_config.eos_token_id or []
    for _ in range(generation_config.max_new_tokens):
        token = step(found)[:, -1].argmax(-1)
        found.append(token)
        if all(int(value) in ends for value in token):
            break
    new = torch.stack(found, dim=1)
    return new if start is None else torch.cat([start, new], dim=1)


class ByteTokenizer:
    """Bytes and special tokens; only what the families ask of a tokenizer."""

    special = ()
    bos_token = None
    chat_template = (
        "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' "
        "+ message['content'] + '<|im_end|>\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
    )

    def __init__(self):
        self.ids = {token: 256 + place for place, token in enumerate(self.special)}
        self.eos_token_id = self.ids[self.special[0]]

    @classmethod
    def register_for_auto_class(cls, auto_class=None):
        pass

    @classmethod
    def from_pretrained(cls, *args, **options):
        return cls()

    def __call__(self, text, add_special_tokens=True):
        pieces = re.split("(" + "|".join(map(re.escape, self.special)) + ")", text)
        ids = []
        for piece in pieces:
            ids.extend([self.ids[piece]] if piece in self.ids else piece.encode())
        return {"input_ids": self.finish(ids)}

    def finish(self, ids):
        return ids

    def convert_tokens_to_ids(self, token):
        return self.ids.get(token)

    def decode(self, ids, **options):
        return bytes(i for i in ids if i < 256).decode(errors="replace")


class ImageProcessor:
    @classmethod
    def register_for_auto_class(cls, auto_class=None):
        pass

    @classmethod
    def from_pretrained(cls, *args, **options):
        return cls()

    # What the automatic class of transformers 4.44 calls.
    @classmethod
    def from_dict(cls, *args, **options):
        return cls()

    def to_json_string(self):
        return json.dumps({"stand_in": type(self).__name__})


def pixels_of(image, side):
    resized = image.convert("RGB").resize((side, side))
    values = torch.tensor(list(resized.tobytes()), dtype=torch.float32) / 255
    return values.view(side, side, 3).permute(2, 0, 1)


# Qwen-VL-Chat: an image is its path's bytes between two marks, filled up to a fixed span.
SPAN = 12


class QWenTokenizer(ByteTokenizer):
    special = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<img>", "</img>", "<imgpad>")

    def finish(self, ids):
        start, end, pad = (self.ids[name] for name in ("<img>", "</img>", "<imgpad>"))
        filled, inside = [], None
        for token in ids:
            if token == start:
                inside = []
            elif token == end:
                if len(inside) >= SPAN:
                    raise ValueError("Image URL is too long")
                filled += [start, *inside, *[pad] * (SPAN - len(inside)), end]
                inside = None
            elif inside is None:
                filled.append(token)
            else:
                inside.append(token)
        return filled


class QWenVision(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(3 * 8 * 8, SPAN * HIDDEN)

    def encode(self, image_paths):
        """Opens files, as the published code does (it also fetches addresses)."""
        return self(torch.stack([normalised(Image.open(path)) for path in image_paths]))

    def forward(self, pixels):
        return self.project(pixels.flatten(1)).view(len(pixels), SPAN, HIDDEN)


def normalised(image):
    mean = torch.tensor((0.48145466, 0.4578275, 0.40821073)).view(3, 1, 1)
    deviation = torch.tensor((0.26862954, 0.26130258, 0.27577711)).view(3, 1, 1)
    resized = image.convert("RGB").resize((8, 8), Image.Resampling.BICUBIC)
    values = torch.tensor(list(resized.tobytes()), dtype=torch.float32).view(8, 8, 3) / 255
    return (values.permute(2, 0, 1) - mean) / deviation


class QWenLMHeadModel(PreTrainedModel):
    config_class = StandInConfig

    def __init__(self, config):
        super().__init__(config)
        self.transformer = nn.Module()
        self.transformer.visual = QWenVision()
        self.decoder = Decoder(config.vocab_size)
        self.post_init()

    def forward(self, input_ids, attention_mask=None, use_cache=None):
        start = self.config.visual["image_start_id"]
        embeddings = self.decoder.embed_tokens(input_ids)
        if torch.any(input_ids == start):
            begins = torch.where(input_ids == start)
            ends = torch.where(input_ids == start + 1)
            places = torch.stack((begins[0], begins[1], ends[1]), dim=1)
            paths = []
            for row, first, last in places:
                path = input_ids[row][first + 1 : last - 1].tolist()
                paths.append(bytes(path[: path.index(start + 2)]).decode("utf-8"))
            images = self.transformer.visual.encode(paths)
            for image, (row, first, last) in zip(images, places):
                embeddings[row][first + 1 : last] = image
        return Output(self.decoder(embeddings))

    def generate(self, input_ids, attention_mask=None, generation_config=None, **options):
        def step(found):
            return self(torch.cat([input_ids, *[token[:, None] for token in found]], 1)).logits

        return greedy(step, input_ids, generation_config)


# Phi-3.5-vision: images are runs of negative ids, and forward clamps the ids that it is given.
class Phi3VTokenizer(ByteTokenizer):
    special = ("<|endoftext|>", "<|end|>", "<|user|>", "<|assistant|>", "<|system|>")
    chat_template = (
        "{% for message in messages %}{{ '<|' + message['role'] + '|>\n' + message['content'] "
        "+ '<|end|>\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}"
    )


class Phi3VImageProcessor(ImageProcessor):
    def __call__(self, images, return_tensors=None):
        tiles = [1 + image.width // 32 for image in images]
        pixels = torch.zeros(len(images), max(tiles), 3, 8, 8)
        for row, image in enumerate(images):
            for tile in range(tiles[row]):
                pixels[row, tile] = pixels_of(image.rotate(tile), 8)
        sizes = torch.tensor([[8, 8 * count] for count in tiles])
        return {
            "pixel_values": pixels,
            "image_sizes": sizes,
            "num_img_tokens": [2 * count for count in tiles],
        }


class Phi3VForCausalLM(PreTrainedModel):
    config_class = StandInConfig

    def __init__(self, config):
        super().__init__(config)
        self.project = nn.Linear(3 * 8 * 8, 2 * HIDDEN)
        self.decoder = Decoder(config.vocab_size)
        self.post_init()

    def forward(
        self,
        input_ids,
        attention_mask=None,
        pixel_values=None,
        image_sizes=None,
        use_cache=None,
    ):
        positions = torch.nonzero((input_ids < 0) & (input_ids > -int(1e9)), as_tuple=True)
        input_ids.clamp_(min=0)
        embeddings = self.decoder.embed_tokens(input_ids)
        if len(positions[0]):
            tiles = [pixel_values[row, : int(size[1]) // 8] for row, size in enumerate(image_sizes)]
            features = self.project(torch.cat(tiles).flatten(1)).view(-1, HIDDEN)
            embeddings = embeddings.index_put(positions, features)
        return Output(self.decoder(embeddings))

    def generate(self, input_ids, attention_mask=None, generation_config=None, **images):
        images.pop("logits_processor", None)

        def step(found):
            ids = torch.cat([input_ids, *[token[:, None] for token in found]], 1)
            return self(ids, **images).logits

        return greedy(step, input_ids.clone(), generation_config)


# MiniCPM-V and -o 2.6: everything about a prompt is one dictionary of lists.
QUERIES = 3


class MiniCPMVTokenizer(ByteTokenizer):
    special = (
        "<|endoftext|>",
        "<|im_start|>",
        "<|im_end|>",
        "<image>",
        "</image>",
        "<slice>",
        "</slice>",
        "<image_id>",
        "</image_id>",
        "<unk>",
    )
    im_start_id = property(lambda self: self.ids["<image>"])
    im_end_id = property(lambda self: self.ids["</image>"])
    slice_start_id = property(lambda self: self.ids["<slice>"])
    slice_end_id = property(lambda self: self.ids["</slice>"])


class MiniCPMVImageProcessor(ImageProcessor):
    def __call__(self, images, return_tensors=None):
        batch = {"pixel_values": [], "tgt_sizes": [], "image_sizes": []}
        for row in images:
            slices = [tile for image in row for tile in self.slices(image)]
            # As the published processor: patches side by side, [3, patch, patches * patch].
            batch["pixel_values"].append([pixels_of(tile, 8)[:, :4] for tile in slices])
            batch["tgt_sizes"].append(torch.tensor([[1, 2]] * len(slices)))
            batch["image_sizes"].append([image.size for image in row])
        return batch

    def slices(self, image):
        return [image, image.rotate(90)] if image.width > 32 else [image]

    def get_slice_image_placeholder(self, image_size, image_idx=0, max_slice_nums=None):
        text = f"<image_id>{image_idx}</image_id><image>{'<unk>' * QUERIES}</image>"
        return text + (f"<slice>{'<unk>' * QUERIES}</slice>" if image_size[0] > 32 else "")


class MiniCPMVLanguageModel(Decoder):
    def forward(self, input_ids=None, position_ids=None, inputs_embeds=None, use_cache=None):
        return Output(super().forward(inputs_embeds))

    def generate(self, inputs_embeds, attention_mask=None, generation_config=None, **options):
        def step(found):
            new = [self.embed_tokens(token)[:, None] for token in found]
            return Decoder.forward(self, torch.cat([inputs_embeds, *new], 1))

        return greedy(step, None, generation_config)


class MiniCPMV(PreTrainedModel):
    config_class = StandInConfig

    def __init__(self, config):
        super().__init__(config)
        self.resampler = nn.Linear(3 * 4 * 8, QUERIES * HIDDEN)
        self.llm = MiniCPMVLanguageModel(config.vocab_size)
        self.post_init()

    def get_vllm_embedding(self, data):
        embeddings = self.llm.embed_tokens(data["input_ids"])
        for row, pixels in enumerate(data["pixel_values"]):
            if not pixels:
                continue
            assert len(pixels) == len(data["tgt_sizes"][row])
            states = self.resampler(torch.stack(pixels).flatten(1)).view(-1, HIDDEN)
            bounds = data["image_bound"][row]
            places = torch.cat([torch.arange(first, last) for first, last in bounds.tolist()])
            embeddings[row, places] = states
        return embeddings, None

    def forward(self, data, **options):
        embeddings, _ = self.get_vllm_embedding(data)
        assert data["position_ids"].dtype == torch.long
        return self.llm(
            input_ids=None,
            position_ids=data["position_ids"],
            inputs_embeds=embeddings,
            **options,
        )


class MiniCPMO(MiniCPMV):
    def __init__(self, config):
        super().__init__(config)
        parts = {"vision": config.init_vision, "audio": config.init_audio, "tts": config.init_tts}
        self.parts = [name for name, wanted in parts.items() if wanted]
