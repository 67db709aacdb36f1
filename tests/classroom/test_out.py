"""What a stranger wrote steers nothing on its way out: no terminal, no spreadsheet, no log."""

import ast
import csv
import io
from pathlib import Path

import pytest
from rich.markup import escape
from rich.table import Table

from grader.classroom.grading.digest import Digest
from grader.classroom.grading.record import HandIn, Row
from grader.classroom.grading.summary import show, write_csv
from grader.classroom.out import as_csv, terminal

HOUSE = Path(__file__).parents[2] / "grader"
NASTY = "\x1b]0;hit\x07\x1b[2Jx\x9b31m\r\u202ecod.exe\u200b\x08[link=http://evil]y[/link]"
# Other ways out, each harmless for a reason of its own.
ALLOWED = {
    "classroom/commands.py": ["print(json.dumps(records, indent=1))"],  # JSON escapes what is not ASCII
    # A platform's own cells go back to it as they came; what is put in are numbers.
    "classroom/grading/export.py": ["csv.writer(box, delimiter=delimiter, lineterminator=end)"],
    "classroom/grading/gradescope.py": ["print(NO_WALLS.format('\\n'.join(gaps)))"],  # words of ours
}
WRITERS = {".print", ".Console", "rich.print", "typer.echo", "typer.secho", "csv.writer", "csv.DictWriter"}
WRITERS |= {f"sys.{name}.write" for name in ("stdout", "stderr", "__stdout__", "__stderr__")}
LOGS = {"debug", "info", "warning", "error", "critical", "exception", "log"}


def printed(*things, **options) -> str:
    console = terminal()
    console.file = io.StringIO()
    console.print(*things, **options)
    return console.file.getvalue()


@pytest.mark.parametrize("force", [False, True])
def test_a_strangers_text_does_not_steer_the_terminal(force, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1") if force else monkeypatch.delenv("FORCE_COLOR", raising=False)
    table = Table("name", title=escape(NASTY))
    table.add_row(f"[red]{escape(NASTY)}[/red]")
    seen = printed(table, escape(NASTY), NASTY) + printed(NASTY, style="dim", soft_wrap=True, markup=False)
    assert "\x1b]" not in seen and "\x1b[2J" not in seen and "\u202e" not in seen and "\x9b" not in seen
    assert ("\x1b[" in seen) == force  # colours of our own


def test_names_and_problems_of_a_class_are_shown_legibly(tmp_path):
    missed = Digest("case3", "wrong", check=NASTY, mistake=NASTY)
    rows = [
        Row(HandIn(tmp_path, NASTY, "07_matmul"), problem=NASTY),
        Row(HandIn(tmp_path, "ada", NASTY), digests=(missed,)),
    ]
    console = terminal()
    console.file = io.StringIO()
    show(rows, console, details=True)
    assert "\x1b" not in console.file.getvalue() and "cod.exe" in console.file.getvalue()


@pytest.mark.parametrize(
    "name", ["=1+1", "+1", "-1+1", "@SUM(1+1)*1", "\t=1", "\r=1", "＝1", '=HYPERLINK("http:e","x")']
)
def test_no_cell_of_the_table_of_marks_is_a_formula(name, tmp_path):
    write_csv(
        [Row(HandIn(tmp_path, name, "07_matmul"), {"case3": -1.5}, {"case3": 4}, problem=name)], tmp_path / "g.csv"
    )
    _, line = (tmp_path / "g.csv").read_text().splitlines()
    assert line.split(",")[0].strip('"')[0] in "'\N{REPLACEMENT CHARACTER}" and ",-1.5," in line


def test_the_table_of_marks_has_the_points_of_the_core(tmp_path):
    """Of these two `case3` is of the core of lesson 07, and `block_matmul` is not."""
    row = Row(HandIn(tmp_path, "ada", "07_matmul"), {"case3": 3.5, "block_matmul": 1}, {"case3": 4, "block_matmul": 2})
    write_csv([row], tmp_path / "g.csv")
    (line,) = csv.DictReader(io.StringIO((tmp_path / "g.csv").read_text()))
    assert [line[name] for name in ("points", "max", "core", "core max")] == ["4.5", "6", "3.5", "4"]


@pytest.mark.parametrize("name", ["x;=1+1", "x; +1", 'x;"=1+1"', "x\t-1", "x\n=1", "x;;\t =1", "x;'＝1", "=1;=1"])
@pytest.mark.parametrize("parting", [";", "\t"])
def test_no_part_of_a_cell_is_a_formula_where_cells_are_parted_otherwise(name, parting):
    for line in as_csv([["ada", name, 1]]).splitlines():
        for part in line.replace('"', "").split(parting):
            assert part.strip()[:1] not in (*"=+-@＝＋－＠",), part
    assert as_csv([["ada; a-b = 1 + 1, - 2"]]).strip() == '"ada; a-b = 1 + 1, - 2"'


def ways_out(file: Path):
    """Calls in a file that write to a terminal, a log or a spreadsheet, but for those that go through `out`."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Call):
            owner, _, name = ast.unparse(node.func).rpartition(".")
            is_log = name in LOGS and owner.rpartition(".")[2].startswith("log")
            if f"{owner}.{name}" in WRITERS or is_log and not is_legible(node):
                yield ast.unparse(node)


def is_legible(call: ast.Call) -> bool:
    """Whether a line for a log is a text of ours, with nothing put into it that was not made legible."""
    text, *parts = call.args
    return isinstance(text, ast.Constant) and all(
        ast.unparse(part).startswith(("legible(", "one_line(")) for part in parts
    )


def test_there_is_no_other_way_out():
    files = [f for f in (HOUSE / "classroom").rglob("*.py") if "inside" not in f.parts and f.name != "out.py"]
    found = {str(f.relative_to(HOUSE)): list(ways_out(f)) for f in files}
    assert {name: calls for name, calls in found.items() if calls} == ALLOWED


def test_a_way_out_is_seen(tmp_path):
    lines = ["print(1)", "sys.stderr.write(x)", "log.error(f'{x}')", "self.log.warning('%s', x)", "Console()"]
    (tmp_path / "module.py").write_text(
        "\n".join([*lines, "log.error('%s', legible(x))", "math.log(2)", "console.print(x)"])
    )
    assert sorted(ways_out(tmp_path / "module.py")) == sorted(lines)
