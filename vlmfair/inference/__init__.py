"""Inference: questions to a model become stored answers."""
