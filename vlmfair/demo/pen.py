"""A drawing pen that works in its own units, so that a picture looks the same at every size."""

from __future__ import annotations

from PIL import Image, ImageDraw

Colour = str | tuple[int, int, int]


class Pen:
    """Draws on an image with an origin and a unit; `at` gives a pen for a figure within it."""

    def __init__(self, image: Image.Image, unit: float, x: float = 0.0, y: float = 0.0) -> None:
        self._image = image
        self._draw = ImageDraw.Draw(image)
        self._unit = unit
        self._x, self._y = x, y

    def at(self, x: float, y: float, scale: float) -> Pen:
        """A pen whose origin is the point (x, y) of this one, its unit `scale` of this one's."""
        origin_x, origin_y = self._point(x, y)
        return Pen(self._image, self._unit * scale, origin_x, origin_y)

    def box(self, x0: float, y0: float, x1: float, y1: float, fill: Colour) -> None:
        """Fill the rectangle between two corners."""
        self._draw.rectangle([self._point(x0, y0), self._point(x1, y1)], fill=fill)

    def oval(self, x0: float, y0: float, x1: float, y1: float, fill: Colour) -> None:
        """Fill the ellipse in the rectangle between two corners."""
        self._draw.ellipse([self._point(x0, y0), self._point(x1, y1)], fill=fill)

    def shape(self, points: list[tuple[float, float]], fill: Colour) -> None:
        """Fill a polygon."""
        self._draw.polygon([self._point(x, y) for x, y in points], fill=fill)

    def line(self, x0: float, y0: float, x1: float, y1: float, fill: Colour, width: float) -> None:
        """Draw a straight line, at least one pixel wide."""
        pixels = max(1, round(width * self._unit))
        self._draw.line([self._point(x0, y0), self._point(x1, y1)], fill=fill, width=pixels)

    def _point(self, x: float, y: float) -> tuple[float, float]:
        return self._x + x * self._unit, self._y + y * self._unit
