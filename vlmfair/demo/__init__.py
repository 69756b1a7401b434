"""The embedded demo world: drawn scenes with known attributes and tiny models with planted bias."""
