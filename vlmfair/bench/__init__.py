"""How fast the core is, against the libraries' plain loops, measured in the same run."""
