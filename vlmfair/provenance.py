"""Where a file comes from: whole-or-nothing writing, content digests and code digests.

Standard library only, because the Snakefile imports this module at every parse.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGE_ROOT = Path(__file__).resolve().parent
LIBRARIES_IN_MANIFESTS = ("numpy", "pandas", "pyarrow", "scipy", "torch", "transformers")


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path beside `path` and rename it there when the block ends well.

    The file appears whole or not at all: on an exception the temporary file is removed.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".", suffix=target.suffix)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        # mkstemp makes files that only the owner reads; results are shared like any other file.
        temporary.chmod(0o666 & ~_current_umask())
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def _current_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Write bytes to `path`, whole or not at all."""
    with atomic_path(path) as temporary:
        temporary.write_bytes(content)


def write_text(path: str | os.PathLike[str], content: str) -> None:
    """Write UTF-8 text to `path`, whole or not at all."""
    write_bytes(path, content.encode("utf-8"))


def write_json(path: str | os.PathLike[str], content: Mapping[str, Any]) -> None:
    """Write a JSON object with sorted keys to `path`, whole or not at all."""
    text = json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
    write_text(path, text + "\n")


def sha256_of_file(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file's bytes as 64 hex digits."""
    with open(path, "rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def sha256_of_text(text: str) -> str:
    """Return the SHA-256 of a text's UTF-8 bytes as 64 hex digits."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def content_id(*parts: str) -> str:
    """Return 32 hex digits that identify a sequence of texts and where each one ends."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        encoded = part.encode("utf-8")
        digest.update(len(encoded).to_bytes(8, "little"))
        digest.update(encoded)
    return digest.hexdigest()


def library_versions() -> dict[str, str]:
    """Return the versions of the numerical libraries that are installed, by name."""
    versions = {}
    for name in LIBRARIES_IN_MANIFESTS:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


def code_digest(script: str | os.PathLike[str]) -> str:
    """Return a digest of a script and of every vlmfair module that it imports, transitively.

    It follows what the code says, not when files were touched: comments, docstrings and
    formatting do not count. A string that names a vlmfair module counts as an import of it,
    since registries import their modules by name. Raises SyntaxError on a file that is not Python.
    """
    digest = hashlib.sha256()
    start = Path(script).resolve()
    pending, seen = [start], {start}
    parsed: dict[str, str] = {}
    while pending:
        path = pending.pop()
        name = path.name if path == start else path.relative_to(PACKAGE_ROOT.parent).as_posix()
        parsed[name], imported = _parse_module(str(path), path.stat().st_mtime_ns)
        for module in imported:
            for found in _module_files(module):
                if found not in seen:
                    seen.add(found)
                    pending.append(found)
    for name in sorted(parsed):
        digest.update(f"{name}\0{parsed[name]}\0".encode())
    return digest.hexdigest()[:16]


@functools.cache
def _parse_module(path: str, _modified: int) -> tuple[str, tuple[str, ...]]:
    tree = ast.parse(Path(path).read_text(encoding="utf-8"), filename=path)
    modules: set[str] = set()
    package = _package_of(Path(path))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join(parents + ([base] if base else []))
            modules.update([base, *(f"{base}.{alias.name}" for alias in node.names)])
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            modules.add(node.value)
    _drop_docstrings(tree)
    ours = tuple(sorted(name for name in modules if name.split(".")[0] == "vlmfair"))
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest(), ours


def _package_of(path: Path) -> str:
    if not path.is_relative_to(PACKAGE_ROOT):
        return ""
    return ".".join(path.parent.relative_to(PACKAGE_ROOT.parent).parts)


def _drop_docstrings(tree: ast.AST) -> None:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        first = node.body[0] if node.body else None
        if (
            isinstance(first, ast.Expr)
            and isinstance(first.value, ast.Constant)
            and isinstance(first.value.value, str)
        ):
            node.body = node.body[1:]


def _module_files(module: str) -> list[Path]:
    """Return the files that importing `vlmfair.a.b` executes: packages and the module."""
    parts = module.split(".")
    if not all(part.isidentifier() for part in parts):
        return []
    files = []
    for depth in range(1, len(parts) + 1):
        base = PACKAGE_ROOT.parent.joinpath(*parts[:depth])
        for candidate in (base / "__init__.py", base.with_suffix(".py")):
            if candidate.is_file():
                files.append(candidate)
    return files
