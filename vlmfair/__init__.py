"""vlmfair: bias measurements on vision-language models, from raw datasets to tables and figures."""

__version__ = "0.1.0"
