"""GRAS: the probability of "Yes" to 100 traits in five wordings, compared between groups."""
