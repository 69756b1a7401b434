"""Statistics over many columns at once, each compared with scipy, pingouin or statsmodels."""
