"""Imports run one way through the whole package, whatever a module's function bodies say."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

# Who may import whom: a part only from earlier lines. Modules that lie in no package are the base
# and may use each other, but for those that are named here; papers are compared one by one below.
BASE = 0
ORDER = (
    {"text", "stats", "audit"},
    {"datasets", "models"},
    {"inference", "retrieval", "sheets"},
    {"render", "synthesis"},
    {"papers"},
    {"bench", "cost", "demo"},
)
RANK = {part: rank for rank, parts in enumerate(ORDER, start=BASE + 1) for part in parts}
# The scripts that draw the demo's raw files and train its models; nobody else knows the demo.
DEMO_SCRIPTS = {
    "draw_listed",
    "draw_raw",
    "draw_selection",
    "train_demo_models",
    "train_demo_pipelines",
}


def module_name(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path: Path, name: str, modules: set[str]) -> Iterator[tuple[int, str]]:
    """Yield line and module of every import, those inside functions and by name included."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join([*(parents if node.level else []), *filter(None, [node.module])])
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                yield node.lineno, inner if inner in modules else base
        elif isinstance(node, ast.Constant) and node.value in modules - {"vlmfair"}:
            yield node.lineno, node.value


def find_imports(root: Path) -> list[tuple[str, int, str]]:
    """Return (importing module, line, imported module) of the package below `root`."""
    files = {module_name(path, root): path for path in sorted((root / "vlmfair").rglob("*.py"))}
    return [
        (name, line, target)
        for name, path in files.items()
        for line, target in imported(path, name, set(files))
    ]


def part_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def paper_of(module: str) -> str:
    parts = module.split(".")
    return parts[2] if parts[1:2] == ["papers"] and len(parts) > 2 else ""


def backward(imports: list[tuple[str, int, str]]) -> list[str]:
    """Return the imports that run against ORDER, from one part to another of the same rank too."""
    found = []
    for name, line, target in imports:
        if not target.startswith("vlmfair.") or part_of(name) == part_of(target):
            continue
        own, other = (RANK.get(part_of(module), BASE) for module in (name, target))
        if other > own or other == own != BASE:
            found.append(f"{name}:{line} imports {target}")
    return found


def between_papers(imports: list[tuple[str, int, str]]) -> list[str]:
    return [
        f"{name}:{line} imports {target}"
        for name, line, target in imports
        if paper_of(name) and paper_of(target) and paper_of(name) != paper_of(target)
    ]


@pytest.fixture(scope="module")
def imports(root: Path) -> list[tuple[str, int, str]]:
    found = [entry for entry in find_imports(root) if entry[0] != "vlmfair"]
    assert len(found) > 300
    return found


def test_every_package_has_its_place(root: Path) -> None:
    packages = {path.parent.name for path in (root / "vlmfair").glob("*/__init__.py")}

    assert packages - set(RANK) == set(), "give each of these its place in ORDER"


def test_imports_run_one_way(imports: list[tuple[str, int, str]]) -> None:
    assert backward(imports) == []


def test_papers_never_import_each_other(imports: list[tuple[str, int, str]]) -> None:
    assert between_papers(imports) == []


def test_nothing_outside_the_demo_imports_it(
    root: Path, imports: list[tuple[str, int, str]]
) -> None:
    library = {name for name, _, target in imports if part_of(target) == "demo"}
    scripts = {
        path.stem
        for path in sorted((root / "workflow/scripts").glob("*.py"))
        for _, target in imported(path, path.stem, set())
        if target.startswith("vlmfair.demo")
    }

    assert {name for name in library if part_of(name) != "demo"} == set()
    assert scripts <= DEMO_SCRIPTS


def test_the_library_imports_without_snakemake(imports: list[tuple[str, int, str]]) -> None:
    users = {name for name, _, target in imports if target.split(".")[0] == "snakemake"}

    assert users == set()


def test_no_module_imports_itself_in_a_circle(imports: list[tuple[str, int, str]]) -> None:
    graph: dict[str, set[str]] = {}
    for name, _, target in imports:
        if target.startswith("vlmfair.") and target != name:
            graph.setdefault(name, set()).add(target)

    try:
        order = list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(f"these modules import each other: {' -> '.join(error.args[1])}")
    assert len(order) >= len(graph)


@pytest.mark.parametrize(
    ("module", "content", "says"),
    [
        ("stats/means.py", "from vlmfair.papers.one import plan", "stats.means:1"),
        ("stats/means.py", "def f():\n    import vlmfair.papers.one.plan", "stats.means:2"),
        ("stats/means.py", "PLANS = {'one': 'vlmfair.papers.one.plan'}", "stats.means:1"),
        ("stats/means.py", "from ..papers.one import plan", "stats.means:1"),
        ("words.py", "from vlmfair.models import chat", "words:1"),
        ("datasets/raw.py", "import vlmfair.models.chat", "datasets.raw:1"),
        ("papers/two/plan.py", "from vlmfair.demo import scenes", "papers.two.plan:1"),
        ("papers/two/plan.py", "from vlmfair.papers.one.plan import x", "papers.two.plan:1"),
    ],
)
def test_a_wrong_import_is_found(tmp_path: Path, module: str, content: str, says: str) -> None:
    others = ("models/chat.py", "papers/one/plan.py", "papers/two/plan.py", "demo/scenes.py")
    for name in (*others, module):
        path = tmp_path / "vlmfair" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        for folder in (path.parent, *path.parent.parents[: len(Path(name).parts) - 1]):
            (folder / "__init__.py").touch()
        path.write_text("from vlmfair import errors\n", encoding="utf-8")
    assert backward(find_imports(tmp_path)) == between_papers(find_imports(tmp_path)) == []
    (tmp_path / "vlmfair" / module).write_text(content, encoding="utf-8")

    found = find_imports(tmp_path)

    (problem,) = backward(found) + between_papers(found)
    assert problem.startswith(f"vlmfair.{says} imports vlmfair.")
