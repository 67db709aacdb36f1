"""Who may import whom: ARCHITECTURE.md says it, and the imports of every file are held to it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "grader"


def rule(name: str) -> dict[str, set[str]]:
    """The table of this name in ARCHITECTURE.md: a room, and the rooms that it may import."""
    block = re.search(rf"```{name}\n(.*?)```", (ROOT / "ARCHITECTURE.md").read_text(), re.DOTALL)[1]
    rows = (line.partition("<-") for line in block.splitlines())
    rooms = {room.strip(): set(allowed.split()) for room, _, allowed in rows}
    return {room: set(rooms) if allowed == {"everything"} else allowed - {"nothing"} for room, allowed in rooms.items()}


def imports(file: Path) -> Iterator[str]:
    """The grader's modules that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "grader":
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("grader."))


def rooms_of(folder: Path) -> list[Path]:
    return [p for p in folder.iterdir() if p.stem not in ("__init__", "__pycache__", "__main__")]


def arrows(folder: Path) -> Iterator[tuple[str, str, str]]:
    """From which room to which, and by which file, between the rooms of a folder."""
    prefix = ".".join(folder.relative_to(ROOT).parts) + "."
    rooms = {place.stem for place in rooms_of(folder)}
    for place in rooms_of(folder):
        for file in [place] if place.is_file() else place.rglob("*.py"):
            for module in imports(file):
                other = module.removeprefix(prefix).split(".")[0] if module.startswith(prefix) else ""
                if other in rooms and other != place.stem:
                    yield place.stem, other, str(file.relative_to(ROOT))


@pytest.mark.parametrize("name, folder", [("rooms", PACKAGE), ("classroom", PACKAGE / "classroom")])
def test_arrows_run_one_way(name, folder):
    allowed = rule(name)
    assert {place.stem for place in rooms_of(folder) if place.suffix in ("", ".py")} == set(allowed)
    assert [arrow for arrow in arrows(folder) if arrow[1] not in allowed[arrow[0]]] == []


@pytest.mark.parametrize("name", ["rooms", "classroom"])
def test_the_table_itself_runs_one_way(name):
    """A room is imported only by rooms below it, but for the two that may import everything."""
    allowed = rule(name)
    order = list(allowed)
    for room, others in allowed.items():
        if others != set(order):
            assert all(order.index(other) < order.index(room) for other in others), room


def files_of(room: Path) -> dict[str, set[str]]:
    """Each file of a package, by its module's name, with the modules of the package that it imports."""
    names = {
        ".".join(f.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): f for f in room.rglob("*.py")
    }
    return {
        name: {m if m in names else m.rpartition(".")[0] for m in imports(file)} & set(names) - {name}
        for name, file in names.items()
    }


def test_no_file_imports_itself_by_way_of_others():
    """Circles, wherever they hide: inside a function too."""
    edges = files_of(PACKAGE)
    edges = {name: {o for o in others if not name.startswith(f"{o}.")} for name, others in edges.items()}
    while free := [name for name, others in edges.items() if not others]:
        for name in free:
            del edges[name]
        edges = {name: others - set(free) for name, others in edges.items()}
    assert not edges, f"in or above a circle: {sorted(edges)}"
