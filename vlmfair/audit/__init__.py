"""Checks of what published numbers imply, written as one table of findings."""

from vlmfair.audit.run import run_audit

__all__ = ["run_audit"]
