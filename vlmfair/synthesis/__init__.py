"""Draws images from captions with text-to-image pipelines of diffusers."""
