"""Measure one GPU with models of real size and random weights: a few minutes, no download.

    python tests/gpu_check.py [--out FILE]     # writes JSON and a section of docs/performance.md
    python tests/gpu_check.py --tiny           # the same road with tiny models on the CPU

Run by hand; vlmfair/bench/gpu.py says what is measured. Ends with 1 when sharing is not exact.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from vlmfair.bench.document import replace_section
from vlmfair.bench.gpu import as_markdown, is_exact, run
from vlmfair.bench.random_models import REAL, TINY
from vlmfair.provenance import write_json

ROOT = Path(__file__).resolve().parent.parent
OUT, DOCUMENT, SECTION = ROOT / "results/bench/gpu_check.json", ROOT / "docs/performance.md", "gpu"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and write what was found; return 1 when sharing is not exact."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--out", type=Path, help="the JSON file (results/bench/gpu_check.json)")
    parser.add_argument("--tiny", action="store_true", help="tiny models on the CPU")
    chosen = parser.parse_args(arguments)
    if not chosen.tiny and not torch.cuda.is_available():
        parser.error("there is no CUDA device here. Use a machine that has one, or --tiny.")
    device, sizes = ("cpu", TINY) if chosen.tiny else ("cuda", REAL)
    report = run(device, ROOT / "resources", sizes)
    shown = as_markdown(report)
    print(shown)
    if chosen.out or not chosen.tiny:
        write_json(chosen.out or OUT, report)
    if not chosen.tiny:
        replace_section(DOCUMENT, SECTION, shown)
    return 0 if all(is_exact(report[name]) for name in ("llava", "qwen")) else 1


if __name__ == "__main__":
    sys.exit(main())
