"""The certificate: only for who passed every gate, escaped, in one file, and honest about whose record it is."""

import json
import re
from html.parser import HTMLParser

import pytest
from rota import LONG, taking_turns

from grader import certificate, cli
from grader.certificate import GATES, Certificate
from grader.classroom.report import papers
from grader.guide.attempts import CHOSEN, FILE
from grader.lessons import EXERCISES

ALL = {name: (EXERCISES[name].points,) * 2 for name in GATES}


@pytest.fixture
def drawn(monkeypatch):
    """The page without the runs that it shows, which take seconds; the last test has them."""
    monkeypatch.setattr(certificate, "_curve", lambda: "<svg></svg>")
    monkeypatch.setattr(certificate, "_reports", lambda: "<p></p>")


@pytest.fixture
def command(monkeypatch, tmp_path, capsys):
    """Runs `grader certificate` for a learner whose best checks gave these points: status, and what was said."""

    def run(points, *arguments):
        monkeypatch.setenv(CHOSEN, str(tmp_path))
        monkeypatch.chdir(tmp_path)
        lines = [{"exercise": name, "points": p, "worth": w, "state": "", "time": 0} for name, (p, w) in points.items()]
        (tmp_path / FILE).write_text("\n".join(map(json.dumps, lines)))
        monkeypatch.setattr("sys.argv", ["grader", "certificate", *arguments])
        with pytest.raises(SystemExit) as end:
            cli.main()
        said = capsys.readouterr()
        return end.value.code or 0, said.out + said.err

    return run


def test_a_gate_is_passed_with_all_its_points_only():
    half = {**ALL, "resume": (1.0, EXERCISES["resume"].points)}
    assert Certificate("Ada", "", half, False).open_gates == ["resume"]
    assert Certificate("Ada", "", {}, False).open_gates == list(GATES)
    assert Certificate("Ada", "", ALL, False).open_gates == []


def test_a_name_is_text_and_the_page_asks_for_no_other_file(drawn):
    page = Certificate("<script>alert(1)</script> & “Ada”", "2026-11-22", ALL, False).page()
    tags = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attributes: tags.append(tag)
    parser.feed(page)
    assert "script" not in tags and not {"img", "link", "iframe"} & set(tags)
    assert "&lt;script&gt;" in page and not re.search(r"(src|href|url)\s*[=(]", page)


def test_it_says_whose_record_it_is_made_from(drawn):
    own, graded = (Certificate("Ada", "", ALL, kind).page() for kind in (False, True))
    assert "could have written the record" in own and "gradebook" not in own
    assert "gradebook of a class" in graded and "could have written the record" not in graded


def test_who_has_not_passed_hears_which_gates_are_open(command, tmp_path):
    status, said = command({name: ALL[name] for name in GATES if name not in ("curve", "plan")}, "Ada")
    assert status == 1 and "curve, plan" in said
    assert not (tmp_path / "certificate.html").exists()


def test_a_class_has_it_from_the_gradebook(command, drawn, monkeypatch, tmp_path):
    points, worth = ({name: pair[k] for name, pair in ALL.items()} for k in (0, 1))
    papers_read = {certificate.CAPSTONE: [papers.Paper("ada", points, worth, {}), papers.Paper("bob", {}, {}, {})]}
    monkeypatch.setattr(papers, "papers_of", lambda root: papers_read)
    (tmp_path / "nbgrader_config.py").touch()
    assert command({}, "Ada", "--student", "ada") == (0, "wrote certificate.html\n")
    assert "gradebook of a class" in (tmp_path / "certificate.html").read_text()
    assert command(ALL, "Bob", "--student", "bob")[0] == 1
    status, said = command(ALL, "Eve", "--student", "eve")
    assert status == 2 and "Nothing of 'eve' is graded here. Graded are: ada, bob." in said
    (tmp_path / "nbgrader_config.py").unlink()
    status, said = command(ALL, "Ada", "--student", "ada")
    assert status == 2 and "not inside the course" in said


def test_without_a_name_or_a_place_to_write_it_is_status_2(command, drawn):
    assert command(ALL, " ")[0] == 2
    status, said = command(ALL, "Ada", "--to", "nowhere/certificate.html")
    assert status == 2 and "nowhere/certificate.html cannot be written" in said


def test_a_name_steers_no_terminal(command, tmp_path):
    target = "certi\x1b[2Jficate.html"
    assert command(ALL, "\x1b]0;x\x07Ada\x9b", "--to", target) == (0, "wrote certi�[2Jficate.html\n")
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", (tmp_path / target).read_text())


@taking_turns(2, LONG)
def test_who_has_passed_has_a_page_with_the_curve_and_what_a_step_sends(command, tmp_path):
    status, said = command(ALL, "Ada Lovelace")
    page = (tmp_path / "certificate.html").read_text()
    assert status == 0, said
    assert page.count("passed</td>") == len(GATES)
    assert "<svg" in page and "eight devices: " in page and "off by nothing but rounding" in page
    assert re.search(r"reduce_scatter</th><td>data</td><td class=\"number\">\d+</td>", page)
