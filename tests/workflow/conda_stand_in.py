"""A stand-in for `conda` where its channels cannot be reached: the commands that snakemake calls.

It is not conda. Real are the YAML files, the solver and the linking of packages (py-rattler), the
pip section with its pins, and activation; the packages are those of a local channel that
`make_stand_in` builds: `python` is the interpreter that runs this, `pip` the one that comes with
it. So it shows that rules name environments that can be created and that they run in them, and
says nothing about conda-forge.
"""

from __future__ import annotations

import argparse
import asyncio
import ensurepip
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

# What snakemake asks of conda at least.
VERSION = "24.7.1"
SUBDIRS = ("linux-64", "noarch")
# Names the folder of a stand-in: channels/, bin/ and cache/ lie in it.
HOME = "CONDA_STAND_IN_HOME"
KNOWN_SECTIONS = {"name", "channels", "dependencies", "variables", "platforms", "prefix"}
ACTIVATE = """\
export CONDA_PREFIX="$1" CONDA_DEFAULT_ENV="$1" CONDA_SHLVL=1 PATH="$1/bin:$PATH"
hash -r
"""


@dataclass
class Package:
    """A package of the local channel: its files and links, by their path in an environment."""

    name: str
    version: str
    subdir: str
    files: dict[str, bytes]
    links: dict[str, str] = field(default_factory=dict)
    depends: tuple[str, ...] = ()
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def file_name(self) -> str:
        return f"{self.name}-{self.version}-0.tar.bz2"

    def index(self) -> dict[str, Any]:
        """Return what info/index.json and the channel's repodata say of it."""
        return {
            "name": self.name,
            "version": self.version,
            "build": "0",
            "build_number": 0,
            "depends": list(self.depends),
            "subdir": self.subdir,
            "license": "stand-in",
            **self.more,
        }

    def write(self, channel: Path) -> dict[str, Any]:
        """Write the archive; return its entry in repodata."""
        paths = [_path_entry(path, "hardlink", content) for path, content in self.files.items()]
        paths += [_path_entry(path, "softlink", b"") for path in self.links]
        about = {
            "info/index.json": json.dumps(self.index()).encode(),
            "info/paths.json": json.dumps({"paths": paths, "paths_version": 1}).encode(),
            "info/files": "\n".join(entry["_path"] for entry in paths).encode(),
        }
        archive = channel / self.subdir / self.file_name
        archive.parent.mkdir(parents=True, exist_ok=True)
        with tarfile.open(archive, "w:bz2", compresslevel=1) as tar:
            for path, content in {**about, **self.files}.items():
                member = tarfile.TarInfo(path)
                member.size = len(content)
                member.mode = 0o755 if path.startswith("bin/") else 0o644
                tar.addfile(member, io.BytesIO(content))
            for path, target in self.links.items():
                member = tarfile.TarInfo(path)
                member.type, member.linkname = tarfile.SYMTYPE, target
                tar.addfile(member)
        content = archive.read_bytes()
        digests = {name: hashlib.new(name, content).hexdigest() for name in ("md5", "sha256")}
        return {**self.index(), **digests, "size": len(content)}


def _path_entry(path: str, kind: str, content: bytes) -> dict[str, Any]:
    digest = hashlib.sha256(content).hexdigest()
    return {"_path": path, "path_type": kind, "sha256": digest, "size_in_bytes": len(content)}


def make_stand_in(home: Path) -> dict[str, str]:
    """Build the channel and the command; return the variables by which snakemake finds them."""
    _write_channel(home / "channels" / "conda-forge", [_python(), _pip()])
    command = home / "bin" / "conda"
    command.parent.mkdir(parents=True)
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{Path(__file__).resolve()}" "$@"\n')
    command.chmod(0o755)
    (home / "bin" / "activate").write_text(ACTIVATE)
    return {HOME: str(home), "PATH": f"{command.parent}:{os.environ['PATH']}"}


def _python() -> Package:
    """Return the running interpreter in the shape of a virtual environment."""
    short, full = (".".join(map(str, sys.version_info[:count])) for count in (2, 3))
    base = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    settings = f"home = {base.parent}\ninclude-system-site-packages = false\nversion = {full}\n"
    packages = f"lib/python{short}/site-packages"
    return Package(
        "python",
        full,
        "linux-64",
        {"pyvenv.cfg": settings.encode(), f"{packages}/README.txt": b"A stand-in.\n"},
        {"bin/python": str(base), "bin/python3": "python", f"bin/python{short}": "python"},
        more={"python_site_packages_path": packages},
    )


def _pip() -> Package:
    """Return the pip that comes with the interpreter."""
    short = ".".join(map(str, sys.version_info[:2]))
    wheel = next(Path(ensurepip.__file__).parent.glob("_bundled/pip-*.whl"))
    with zipfile.ZipFile(wheel) as packed:
        files = {
            f"lib/python{short}/site-packages/{name}": packed.read(name)
            for name in packed.namelist()
            if not name.endswith("/")
        }
    files["bin/pip"] = b'#!/bin/sh\nexec "$(dirname "$0")/python" -m pip "$@"\n'
    version = wheel.name.split("-")[1]
    return Package("pip", version, "linux-64", files, depends=(f"python {short}.*",))


def _write_channel(channel: Path, packages: list[Package]) -> None:
    for subdir in SUBDIRS:
        entries = {
            package.file_name: package.write(channel)
            for package in packages
            if package.subdir == subdir
        }
        repodata = {
            "info": {"subdir": subdir},
            "packages": entries,
            "packages.conda": {},
            "removed": [],
            "repodata_version": 1,
        }
        (channel / subdir).mkdir(parents=True, exist_ok=True)
        (channel / subdir / "repodata.json").write_text(json.dumps(repodata))


def create(file: Path, prefix: Path, home: Path) -> None:
    """Create the environment of a YAML file: `conda env create --file FILE --prefix PREFIX`."""
    settings = yaml.safe_load(file.read_text()) or {}
    if unknown := set(settings) - KNOWN_SECTIONS:
        sys.exit(f"{file}: unknown sections {sorted(unknown)}")
    channels = [
        _channel(name, home) for name in settings.get("channels", []) if name != "nodefaults"
    ]
    if not channels:
        sys.exit(f"{file}: no channels")
    dependencies = settings.get("dependencies", [])
    asyncio.run(
        _install(
            [entry for entry in dependencies if isinstance(entry, str)], channels, prefix, home
        )
    )
    # snakemake takes an environment without it for one that was not finished.
    (prefix / "conda-meta").mkdir(parents=True, exist_ok=True)
    (prefix / "conda-meta" / "history").touch()
    pins = [pin for entry in dependencies if isinstance(entry, dict) for pin in entry["pip"]]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as listed:
        listed.write("\n".join(pins) + "\n")
        listed.flush()
        python = str(prefix / "bin" / "python")
        subprocess.run([python, "-m", "pip", "install", "--quiet", "-r", listed.name], check=True)


def _channel(name: str, home: Path) -> str:
    folder = home / "channels" / name
    if not folder.is_dir():
        sys.exit(f"the channel {name} has no stand-in in {folder.parent}")
    return folder.as_uri()


async def _install(specs: list[str], channels: list[str], prefix: Path, home: Path) -> None:
    import rattler

    try:
        records = await rattler.solve(
            [rattler.Channel(channel) for channel in channels],
            [rattler.MatchSpec(spec) for spec in specs],
            gateway=rattler.Gateway(cache_dir=home / "cache" / "repodata"),
            platforms=list(SUBDIRS),
            virtual_packages=rattler.VirtualPackage.detect(),
            channel_priority=rattler.ChannelPriority.Strict,
        )
    except rattler.exceptions.SolverError as error:
        sys.exit(f"the environment cannot be solved: {error}")
    await rattler.install(
        records, target_prefix=prefix, cache_dir=home / "cache" / "packages", show_progress=False
    )


def main(arguments: list[str]) -> None:
    """Answer as conda would."""
    home = Path(os.environ[HOME])
    if arguments == ["--version"]:
        print(f"conda {VERSION}")
    elif arguments[:1] == ["info"]:
        places = {"conda_prefix": str(home), "root_prefix": str(home)}
        print(json.dumps({**places, "platform": "linux-64", "conda_version": VERSION}))
    elif arguments[:3] == ["config", "--get", "channel_priority"]:
        print(json.dumps({"get": {"channel_priority": "strict"}, "success": True}))
    elif arguments[:2] == ["env", "create"]:
        parser = argparse.ArgumentParser()
        parser.add_argument("--file", type=Path, required=True)
        parser.add_argument("--prefix", type=Path, required=True)
        parser.add_argument("--quiet", action="store_true")
        parser.add_argument("--no-default-packages", action="store_true")
        options = parser.parse_args(arguments[2:])
        create(options.file, options.prefix, home)
    elif arguments[:1] != ["clean"]:
        sys.exit(f"the stand-in for conda does not know: {' '.join(arguments)}")


if __name__ == "__main__":
    main(sys.argv[1:])
