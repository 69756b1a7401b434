"""VL-BICLE: gender bias in in-context learning of vision-language models."""
