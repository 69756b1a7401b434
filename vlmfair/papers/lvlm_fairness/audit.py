"""The audit of the fairness of LVLMs: what the paper's printed numbers imply about each other.

Every printed recall is a count of right answers over the whole group, so that differences, F1,
percentages, totals and samples can be recomputed from counts instead of rounded numbers.
"""

from __future__ import annotations

from pathlib import Path

from vlmfair.audit.cells import load_cells
from vlmfair.audit.rows import AuditRow
from vlmfair.papers.lvlm_fairness.audit_classes import class_checks
from vlmfair.papers.lvlm_fairness.audit_encoders import encoder_checks
from vlmfair.papers.lvlm_fairness.audit_numbers import PaperNumbers
from vlmfair.papers.lvlm_fairness.audit_rationale import rationale_checks
from vlmfair.papers.lvlm_fairness.audit_recall import recall_checks
from vlmfair.papers.lvlm_fairness.audit_samples import sample_checks
from vlmfair.papers.lvlm_fairness.audit_sentences import sentence_checks


def audit(published_path: Path) -> list[AuditRow]:
    """Return every check of the paper; ConfigError on a bad table of published cells."""
    numbers = PaperNumbers(load_cells(published_path))
    return [
        *sentence_checks(numbers),
        *recall_checks(numbers),
        *rationale_checks(numbers),
        *encoder_checks(numbers),
        *class_checks(numbers),
        *sample_checks(numbers),
    ]
