"""One parser alone: `python -m vlmfair.datasets NAME RAW_DIR OUT_DIR [--seed N] ...`."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from vlmfair.contracts import PROBLEMS, SAMPLES, write_table
from vlmfair.datasets import DATASETS, funnel_of, parse_dataset
from vlmfair.datasets.funnel import write_funnel
from vlmfair.datasets.label_files import read_paths
from vlmfair.errors import VlmfairError

# The rules that some datasets have, by their names in the configuration.
OPTIONS = {
    "policy": "utkface: drop, public_corrections or paper_table1",
    "tone_rule": "facet: majority, argmax, mean or strict",
    "version": "visogender: newest, or the day of a release of its tables",
    "crowd": "coco_bias: counts or ignored",
    "seed": "visogender, coco_bias, dci, visual_cot: of the split into pool and queries",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse a raw folder, write its tables, and return the exit code."""
    options = _parser().parse_args(arguments)
    try:
        only = None if options.only is None else read_paths(options.only)
        given = {name: getattr(options, name) for name in OPTIONS}
        rules = {name: value for name, value in given.items() if value is not None}
        parsed = parse_dataset(
            options.name, options.raw_dir, only=only, threads=options.threads, options=rules
        )
        manifest = {"dataset": options.name, "raw_dir": options.raw_dir.as_posix(), **rules}
        write_table(
            options.out_dir / "problems.parquet", parsed.problems, PROBLEMS, manifest=manifest
        )
        write_table(options.out_dir / "samples.parquet", parsed.samples, SAMPLES, manifest=manifest)
        steps = funnel_of(options.name, parsed)
        if steps is not None:
            write_funnel(options.out_dir / "funnel.csv", steps)
    except (VlmfairError, OSError) as error:
        print(f"vlmfair.datasets: {error}", file=sys.stderr)
        return 1
    print(f"{options.out_dir}: {len(parsed.samples)} samples, {len(parsed.problems)} problems")
    for reason, count in sorted(Counter(parsed.problems["reason"].to_pylist()).items()):
        print(f"  {reason}: {count}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m vlmfair.datasets", description=__doc__)
    parser.add_argument("name", choices=sorted(DATASETS), help="which dataset")
    parser.add_argument("raw_dir", type=Path, help="the folder as downloaded and unpacked")
    parser.add_argument("out_dir", type=Path, help="where samples.parquet and problems.parquet go")
    parser.add_argument("--only", type=Path, metavar="CSV", help="open only the images listed here")
    for name, meaning in OPTIONS.items():
        parser.add_argument(f"--{name.replace('_', '-')}", help=meaning)
    parser.add_argument("--threads", type=int, default=1, help="threads that open images")
    return parser


if __name__ == "__main__":
    sys.exit(main())
