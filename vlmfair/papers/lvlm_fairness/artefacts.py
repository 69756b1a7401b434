"""Which figures of the paper show an image; standard library only, for the workflow's parsing."""

from __future__ import annotations

# The figures that show an image of a dataset.
WITH_IMAGES = ("figure_4", "figure_6")
