"""What a script prints goes into its log; a user's error is one sentence there and on screen."""

from __future__ import annotations

import logging
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path

from vlmfair.errors import VlmfairError
from vlmfair.usage import usage_sentence


@contextmanager
def rule_log(path: str | os.PathLike[str]) -> Iterator[None]:
    """Send logging, prints and uncaught errors of the block into the log file at `path`.

    A VlmfairError becomes its message and exit code 1, without a traceback, because it says what
    to do; any other error keeps its traceback, because it is a fault of the workflow. Where
    all went well, the last line says what the process has used.
    """
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with Path(path).open("w", encoding="utf-8", buffering=1) as log:
        handler = logging.StreamHandler(log)
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        root = logging.getLogger()
        root.addHandler(handler)
        root.setLevel(logging.INFO)
        logging.captureWarnings(True)
        try:
            with redirect_stdout(log), redirect_stderr(log):
                yield
            logging.info(usage_sentence())
        except VlmfairError as error:
            log.write(f"ERROR {error}\n")
            print(f"ERROR {error}", file=sys.stderr)
            raise SystemExit(1) from None
        except OSError as error:
            # Full disks and missing permissions are the user's to mend; the traceback stays in
            # the log, because not every OSError is one of these.
            with suppress(OSError):
                log.write(traceback.format_exc())
            where = error.filename or "a file"
            print(
                f"ERROR {where}: {error.strerror or error}. Free space or change permissions, "
                f"then run again; the log has the details.",
                file=sys.stderr,
            )
            raise SystemExit(1) from None
        except Exception:
            log.write(traceback.format_exc())
            raise
        finally:
            root.removeHandler(handler)
