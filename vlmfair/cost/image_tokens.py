"""How many tokens an image becomes in each family, and how much of it the vision tower sees.

The rules are those of the families' own processors, with the settings of their checkpoints.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

# LLaVA-1.6's canvases of tiles of 336 pixels: height x width.
_PINPOINTS = ((336, 672), (672, 336), (672, 672), (1008, 336), (336, 1008))


@dataclass(frozen=True)
class ImageLoad:
    """Tokens of an image in a prompt, the crops that the vision tower sees, and patches of each."""

    tokens: int
    crops: int
    patches: int


def image_load(family: str, width: int, height: int, tower: tuple[int, int] | None) -> ImageLoad:
    """Return what an image of so many pixels becomes.

    `tower` is the side of the vision tower's image and of its patches in pixels, which decides in
    the family llava. An unknown family is taken as LLaVA's: one view of 336 pixels.
    """
    if family in _RULES:
        return _RULES[family](width, height)
    side, patch = tower or (336, 14)
    tokens = (side // patch) ** 2
    return ImageLoad(tokens, 1, tokens + 1)


def _llava_next(width: int, height: int) -> ImageLoad:
    canvas_height, canvas_width = max(_PINPOINTS, key=lambda canvas: _fit(canvas, width, height))
    rows, columns = canvas_height // 14, canvas_width // 14
    if width / height > columns / rows:
        padding = (rows - int(round(height * (columns / width), 7))) // 2
        rows -= 2 * padding
    else:
        padding = (columns - int(round(width * (rows / height), 7))) // 2
        columns -= 2 * padding
    tiles = canvas_height * canvas_width // 336**2
    return ImageLoad(576 + rows * columns + rows, 1 + tiles, 577)


def _fit(canvas: tuple[int, int], width: int, height: int) -> tuple[int, int]:
    """Return how much of an image a canvas keeps, and how little of the canvas stays empty."""
    scale = min(canvas[1] / width, canvas[0] / height)
    kept = min(int(width * scale) * int(height * scale), width * height)
    return kept, kept - canvas[0] * canvas[1]


def _native(factor: int, least: int, most: int) -> Callable[[int, int], ImageLoad]:
    """The rule of Qwen: sides rounded to multiples of a factor, within limits of pixels."""

    def rule(width: int, height: int) -> ImageLoad:
        rows, columns = (max(1, round(side / factor)) for side in (height, width))
        area = rows * columns * factor**2
        if area > most:
            scale = math.sqrt(width * height / most)
            rows, columns = (int(side / scale / factor) for side in (height, width))
        elif area < least:
            scale = math.sqrt(least / (width * height))
            rows, columns = (math.ceil(side * scale / factor) for side in (height, width))
        return ImageLoad(rows * columns, 1, 4 * rows * columns)

    return rule


def _phi4(width: int, height: int) -> ImageLoad:
    """Tiles of 448 pixels around the image at its own size, up to 36, of 16 x 16 tokens each."""
    columns, rows = math.ceil(width / 448), math.ceil(height / 448)
    if columns * rows > 36:
        columns, rows = _nearest_shape(width / height, 36)
    # The padding on one side has no tokens.
    scale = min(448 * columns / width, 448 * rows / height)
    seen = [math.ceil(side * scale / 28) for side in (height, width)]
    used_rows, used_columns = min(seen[0], 16 * rows), min(seen[1], 16 * columns)
    tokens = 256 + 1 + used_rows * used_columns + used_rows + 16
    return ImageLoad(tokens, 1 + rows * columns, 1024)


def _idefics3(width: int, height: int) -> ImageLoad:
    """The longer side becomes 1,456 pixels; tiles of 364 with 169 tokens and tags, and a whole."""
    if width >= height:
        columns = 4
        rows = math.ceil(_even(int(1456 * height / width)) / 364)
    else:
        rows = 4
        columns = math.ceil(_even(int(1456 * width / height)) / 364)
    tiles = rows * columns
    return ImageLoad(tiles * (169 + 2) + rows + 1 + 2 + 169 + 1, tiles + 1, 676)


def _even(side: int) -> int:
    return side + side % 2


def _internvl(width: int, height: int) -> ImageLoad:
    """Up to 12 tiles of 448 pixels in the nearest shape, of 256 tokens each, and a whole."""
    columns, rows = _nearest_shape(width / height, 12, area=width * height)
    tiles = columns * rows
    views = tiles + (tiles > 1)
    return ImageLoad(256 * views + 2, views, 1025)


def _nearest_shape(ratio: float, most: int, area: float | None = None) -> tuple[int, int]:
    """Return columns and rows of at most `most` tiles whose shape is nearest to an image's.

    Of equally near ones the last that the image fills by half, in the order of the processors.
    """
    shapes = [
        (columns, rows)
        for columns, rows in itertools.product(range(1, most + 1), repeat=2)
        if columns * rows <= most
    ]
    shapes.sort(key=lambda shape: shape[0] * shape[1])
    best, nearest = (1, 1), math.inf
    for shape in shapes:
        distance = abs(ratio - shape[0] / shape[1])
        fills = area is not None and area > 0.5 * 448**2 * shape[0] * shape[1]
        if distance < nearest or (distance == nearest and fills):
            best, nearest = shape, distance
    return best


def _mllama(width: int, height: int) -> ImageLoad:
    """One token; cross attention sees four tiles of 560 pixels, empty ones too."""
    return ImageLoad(1, 4, 1601)


def _phi3_5(width: int, height: int) -> ImageLoad:
    """Up to 4 tiles of 336 pixels of 144 tokens, a whole, and a break behind each row."""
    longer, shorter = max(width, height), min(width, height)
    scale = 1
    while (scale + 1) * math.ceil((scale + 1) * shorter / longer) <= 4:
        scale += 1
    across = math.ceil(scale * shorter / longer)
    rows = across if width >= height else scale
    tiles = scale * across
    return ImageLoad((tiles + 1) * 144 + 1 + (rows + 1) * 12, tiles + 1, 577)


def _minicpm(width: int, height: int) -> ImageLoad:
    """A whole and up to 9 slices of about 448 x 448 pixels, of 64 tokens and tags each."""
    slices = min(math.ceil(width * height / 448**2), 9)
    views = 1 if slices <= 1 else 1 + slices
    return ImageLoad(views * 66 + 3, views, 1024)


def _fixed(tokens: int, patches: int) -> Callable[[int, int], ImageLoad]:
    return lambda width, height: ImageLoad(tokens, 1, patches)


_RULES: Mapping[str, Callable[[int, int], ImageLoad]] = MappingProxyType(
    {
        "blip2": _fixed(32, 257),
        "idefics3": _idefics3,
        "internvl": _internvl,
        "llava_next": _llava_next,
        "minicpm_llama3_v": _minicpm,
        "minicpm_o": _minicpm,
        "minicpm_v": _minicpm,
        "mllama": _mllama,
        "paligemma": _fixed(256, 256),
        "phi3_5_vision": _phi3_5,
        "phi4_multimodal": _phi4,
        "qwen2_5_vl": _native(28, 56 * 56, 12845056),
        "qwen3_vl": _native(32, 256 * 256, 4096 * 4096),
        "qwen_vl_v1": _fixed(258, 1024),
    }
)


def served_tokens(api_model: str, width: int, height: int) -> int:
    """Return the tokens that a server counts for an image.

    OpenAI's GPT-4o: 85 and 170 for each tile of 512 pixels, the shorter side at most 768; Gemini
    1.5: 258. Other servers as GPT-4o.
    """
    if "gemini" in api_model:
        return 258
    scale = min(1.0, 2048 / max(width, height))
    scale *= min(1.0, 768 / (min(width, height) * scale))
    tiles = math.ceil(width * scale / 512) * math.ceil(height * scale / 512)
    return 85 + 170 * tiles
