"""The answer store: every answer a model ever gave, kept by the content of what it was asked.

A store is a folder for one model and its settings, with append-only Parquet parts. Parts are
written under a temporary name and renamed, so that two writers are harmless and an interrupted run
loses only what was not flushed.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import struct
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from vlmfair.errors import InferenceError, reason_of
from vlmfair.inference.queries import Answer, Query
from vlmfair.models.chat import RenderedPrompt
from vlmfair.provenance import atomic_path, write_json

logger = logging.getLogger(__name__)

KEY_BYTES = 16
FLUSH_ANSWERS = 20_000
FLUSH_SECONDS = 30.0
# A part with fewer answers costs more in files than an interruption could in answers.
LEAST_FLUSHED = 250
# The finish reason of an answer that the model or its filter refused to give.
REFUSED = "refused"
_METADATA = b"vlmfair.answers"
_WORD = pa.dictionary(pa.int32(), pa.string())

PART = pa.schema(
    [
        ("key", pa.binary(KEY_BYTES)),
        ("logits", pa.list_(pa.float32())),
        ("logsumexp", pa.list_(pa.float32())),
        ("label_tokens", _WORD),
        ("text", pa.string()),
        ("prompt_tokens", pa.int32()),
        ("completion_tokens", pa.int32()),
        ("finish_reason", _WORD),
        ("inference_mode", _WORD),
    ]
)


def answer_key(
    query: Query,
    prompt: RenderedPrompt,
    label_ids: Sequence[int],
    temperatures: Sequence[float],
) -> bytes:
    """Return the key of an answer: 16 bytes from all that decides it, the model's settings apart.

    That is the prompt's token ids (one placeholder for each image), each image's bytes (by their
    SHA-256) and transform, the label tokens and temperatures, or the limit on new tokens.
    """
    digest = hashlib.blake2b(digest_size=KEY_BYTES)
    digest.update(query.mode.encode())
    digest.update(struct.pack(f"<q{len(prompt.ids)}i", len(prompt.ids), *prompt.ids))
    for image in query.images:
        digest.update(f"{image.sha256}\0{image.transform}\0".encode())
    if query.mode == "score":
        digest.update(struct.pack(f"<q{len(label_ids)}i", len(label_ids), *label_ids))
        digest.update(struct.pack(f"<{len(temperatures)}d", *temperatures))
    else:
        digest.update(struct.pack("<q", query.max_new_tokens))
    return digest.digest()


def is_kept(answer: Answer) -> bool:
    """Whether an answer is kept: no error and no empty text, unless the model refused to answer."""
    if answer.error is not None:
        return False
    says_something = answer.logits is not None or bool((answer.text or "").strip())
    return says_something or answer.finish_reason == REFUSED


class AnswerStore:
    """The stored answers of one model with one set of settings.

    `identity` states model, content digest, processor settings, dtype, attention and SEMANTICS;
    its digest names the folder, and every part carries it, so that a part from elsewhere is
    never used. Use as a context manager: leaving it flushes.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        identity: Mapping[str, Any],
        *,
        flush_answers: int = FLUSH_ANSWERS,
        flush_seconds: float = FLUSH_SECONDS,
    ) -> None:
        text = json.dumps(identity, sort_keys=True, ensure_ascii=True)
        self.digest = hashlib.sha256(text.encode()).hexdigest()[:32]
        self.folder = Path(root) / self.digest
        self._identity = dict(identity)
        self._schema = PART.with_metadata({_METADATA: self.digest.encode()})
        self._flush_answers = flush_answers
        self._flush_seconds = flush_seconds
        self._pending: list[dict[str, Any]] = []
        self._flushed_at = time.monotonic()
        self.skipped_parts: list[str] = []

    def __enter__(self) -> AnswerStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.flush()

    def find(self, keys: Sequence[bytes]) -> pa.Table:
        """Return the stored answers to `keys`: the columns of PART and `row`, the place in `keys`.

        Each key appears once at most. Only the key column of a part is read unless it has hits.
        """
        wanted = pa.array(keys, pa.binary(KEY_BYTES))
        found: list[pa.Table] = []
        seen = pa.array([], pa.int32())
        for path in self._parts():
            hits = self._find_in_part(path, wanted)
            if hits is None or not len(hits):
                continue
            fresh = hits.filter(pc.invert(pc.is_in(hits["row"], value_set=seen)))
            if len(fresh):
                found.append(fresh)
                seen = pa.concat_arrays([seen, fresh["row"].combine_chunks()])
        if not found:
            return self._schema.append(pa.field("row", pa.int32())).empty_table()
        return pa.concat_tables(found).unify_dictionaries().sort_by("row")

    def add(self, key: bytes, answer: Answer) -> None:
        """Keep an answer, flushing when enough of them or enough seconds have gathered.

        What `is_kept` refuses is asked again by the next run.
        """
        if is_kept(answer):
            columns = {name: getattr(answer, name) for name in PART.names if name != "key"}
            self._pending.append({"key": key, **columns})
        waited = time.monotonic() - self._flushed_at
        if len(self._pending) >= self._flush_answers or waited >= self._flush_seconds:
            self.flush()

    def keep_most_of(self, answers: int) -> None:
        """Flush often enough that an interruption loses at most a fortieth of `answers`."""
        self._flush_answers = min(self._flush_answers, max(LEAST_FLUSHED, answers // 40))

    def check_writable(self) -> None:
        """Raise InferenceError unless a part could be written, before anything is computed."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.folder):
                pass
        except OSError as error:
            raise InferenceError(
                f"the answer store {self.folder} cannot be written ({error.strerror}), and answers "
                f"that are not kept would be lost. Make it writable, or name another answer_store."
            ) from error

    def flush(self) -> None:
        """Write what was added since the last flush as one part."""
        self._flushed_at = time.monotonic()
        if not self._pending:
            return
        identity_file = self.folder / "identity.json"
        if not identity_file.exists():
            write_json(identity_file, self._identity)
        table = pa.Table.from_pylist(self._pending, schema=self._schema)
        name = f"{time.strftime('%Y%m%d%H%M%S', time.gmtime())}-{uuid.uuid4().hex}.parquet"
        with atomic_path(self.folder / name) as temporary:
            pq.write_table(
                table,
                temporary,
                compression="zstd",
                use_dictionary=[
                    *("label_tokens", "text", "finish_reason", "inference_mode"),
                    *("prompt_tokens", "completion_tokens"),
                ],
                column_encoding={
                    "logits.list.element": "BYTE_STREAM_SPLIT",
                    "logsumexp.list.element": "BYTE_STREAM_SPLIT",
                },
                # Without checksums most flipped bits would be read back as another answer.
                write_page_checksum=True,
                # Keys are random bytes: bounds and statistics of them would tell nothing.
                write_statistics=False,
            )
        self._pending.clear()

    def _parts(self) -> list[Path]:
        if not self.folder.is_dir():
            return []
        # A name that starts with a dot is a part that its writer has not finished.
        paths = self.folder.glob("*.parquet")
        return sorted(path for path in paths if not path.name.startswith("."))

    def _find_in_part(self, path: Path, wanted: pa.Array) -> pa.Table | None:
        try:
            with pq.ParquetFile(path, page_checksum_verification=True) as part:
                metadata = part.schema_arrow.metadata or {}
                if metadata.get(_METADATA) != self.digest.encode():
                    self._skip(path, "it belongs to another model or other settings")
                    return None
                keys = part.read(columns=["key"], use_threads=False)["key"]
                rows = pc.index_in(keys, value_set=wanted).combine_chunks()
                if rows.null_count == len(rows):
                    return None
                table = part.read(use_threads=False).select(PART.names).cast(self._schema)
            table = table.append_column("row", rows)
            return table.filter(pc.is_valid(table["row"]))
        except (pa.ArrowException, OSError, KeyError) as error:
            self._skip(path, reason_of(error))
            return None

    def _skip(self, path: Path, reason: str) -> None:
        if path.name not in self.skipped_parts:
            self.skipped_parts.append(path.name)
            logger.warning(
                "%s is skipped, and its answers are asked again: %s. Delete the file.", path, reason
            )
