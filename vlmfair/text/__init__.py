"""Reading what models answer in words."""
