"""Published numbers and the rows of their audit; each paper's own checks lie in its package."""
