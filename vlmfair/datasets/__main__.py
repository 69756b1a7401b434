"""One parser alone: `python -m vlmfair.datasets NAME RAW_DIR OUT_DIR [--only CSV]`."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from vlmfair.contracts import PROBLEMS, SAMPLES, write_table
from vlmfair.datasets import DATASETS, parse_dataset
from vlmfair.datasets.base import ProblemLog
from vlmfair.datasets.label_files import read_label_file
from vlmfair.errors import VlmfairError

PATH_COLUMNS = ("file", "Image Path")


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse a raw folder, write samples.parquet and problems.parquet, and return the exit code."""
    options = _parser().parse_args(arguments)
    try:
        only = None if options.only is None else read_paths(options.only)
        parsed = parse_dataset(options.name, options.raw_dir, only=only, threads=options.threads)
        manifest = {"dataset": options.name, "raw_dir": options.raw_dir.as_posix()}
        write_table(
            options.out_dir / "problems.parquet", parsed.problems, PROBLEMS, manifest=manifest
        )
        write_table(options.out_dir / "samples.parquet", parsed.samples, SAMPLES, manifest=manifest)
    except (VlmfairError, OSError) as error:
        print(f"vlmfair.datasets: {error}", file=sys.stderr)
        return 1
    print(f"{options.out_dir}: {len(parsed.samples)} samples, {len(parsed.problems)} problems")
    for reason, count in sorted(Counter(parsed.problems["reason"].to_pylist()).items()):
        print(f"  {reason}: {count}")
    return 0


def read_paths(path: Path) -> list[str]:
    """Return the image paths in the column `file` or `Image Path` of a list.

    Raises RawDataError when the file or the column is missing.
    """
    fetch = "Write a comma-separated file with a header."
    table = read_label_file(path, [PATH_COLUMNS], ProblemLog("list"), fetch=fetch)
    return list(table[next(name for name in PATH_COLUMNS if name in table.columns)])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m vlmfair.datasets", description=__doc__)
    parser.add_argument("name", choices=sorted(DATASETS), help="which dataset")
    parser.add_argument("raw_dir", type=Path, help="the folder as downloaded and unpacked")
    parser.add_argument("out_dir", type=Path, help="where samples.parquet and problems.parquet go")
    parser.add_argument("--only", type=Path, metavar="CSV", help="open only the images listed here")
    parser.add_argument("--threads", type=int, default=1, help="threads that open images")
    return parser


if __name__ == "__main__":
    sys.exit(main())
