"""The answer store of a model that is paid for: each answer is on disk as soon as it is there."""

from __future__ import annotations

import fcntl
import json
import logging
import os
from collections.abc import Mapping
from typing import Any

from vlmfair.inference.queries import Answer
from vlmfair.inference.store import KEY_BYTES, PART, AnswerStore, is_kept

logger = logging.getLogger(__name__)

JOURNAL = "journal.jsonl"
LOCK = "asking.lock"


class PaidStore(AnswerStore):
    """An answer store with a journal: a line for each answer, until the next part has it.

    A killed job loses nothing that it received: the next one finds the journal and writes its
    answers as a part. Only one job at a time asks a model (the others wait at `with`), so that
    no question is paid twice and the entry's `concurrency` is that of the whole run.
    """

    def __init__(
        self, root: str | os.PathLike[str], identity: Mapping[str, Any], **options: Any
    ) -> None:
        super().__init__(root, identity, **options)
        self._lock = -1
        self._journal = -1
        self._recovering = False

    def __enter__(self) -> PaidStore:
        self.check_writable()
        self._lock = os.open(self.folder / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        self._take_lock()
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT
        self._journal = os.open(self.folder / JOURNAL, flags, 0o666)
        self._recover()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.flush()
        finally:
            os.close(self._journal)
            # Closing gives the lock back, as the end of the process does however it ends.
            os.close(self._lock)

    def add(self, key: bytes, answer: Answer) -> None:
        """Keep an answer, in the journal at once; errors and empty texts are not kept."""
        if is_kept(answer):
            columns = {name: getattr(answer, name) for name in PART.names if name != "key"}
            line = json.dumps({"key": key.hex(), **columns}) + "\n"
            _write_all(self._journal, line.encode())
        super().add(key, answer)

    def flush(self) -> None:
        """Write what was added since the last flush as one part, and empty the journal."""
        super().flush()
        if not self._recovering:
            os.ftruncate(self._journal, 0)

    def _take_lock(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            logger.info("Another job asks this model; waiting until it has finished.")
            fcntl.flock(self._lock, fcntl.LOCK_EX)
        except OSError as error:
            logger.warning(
                "%s cannot be locked (%s). Run one job at a time for this model, "
                "or put answer_store on a local disk.",
                self.folder,
                error.strerror,
            )

    def _recover(self) -> None:
        with open(self.folder / JOURNAL, "rb") as journal:
            lines = journal.read().splitlines()
        recovered = 0
        # Until all of its answers are in parts, the journal is their only place.
        self._recovering = True
        for line in lines:
            try:
                row = json.loads(line)
                key = bytes.fromhex(row.pop("key"))
                answer = Answer(request_id="", **row)
            except (ValueError, TypeError, KeyError, AttributeError):
                key = b""
            if len(key) != KEY_BYTES:
                logger.warning("%s: a damaged line is left out.", self.folder / JOURNAL)
                continue
            super().add(key, answer)
            recovered += 1
        super().flush()
        self._recovering = False
        os.ftruncate(self._journal, 0)
        if recovered:
            logger.info("%d answers of a run that was killed are recovered.", recovered)


def _write_all(handle: int, content: bytes) -> None:
    written = 0
    while written < len(content):
        written += os.write(handle, content[written:])
