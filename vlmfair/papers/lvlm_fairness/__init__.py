"""Fairness of large vision-language models on FACET and UTKFace, and rationales against bias."""
