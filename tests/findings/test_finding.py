"""Findings as JSON: each kind comes back as it was, and nothing else is taken for a finding."""

import importlib
import json
import pkgutil
from dataclasses import dataclass

import pytest

import grader.findings
from grader.findings.cases import GivenArgument, InFirstCase
from grader.findings.finding import FINDING_KINDS, LONGEST_FIELD, Finding, finding_from_json, finding_to_json
from grader.wording.said import TEMPLATES

MODULES = [
    importlib.import_module(f"grader.findings.{one.name}") for one in pkgutil.iter_modules(grader.findings.__path__)
]
EXAMPLES = {module.__name__.rpartition(".")[2]: getattr(module, "EXAMPLES", ()) for module in MODULES}


@pytest.mark.parametrize("examples", EXAMPLES.values(), ids=EXAMPLES)
def test_every_kind_comes_back_from_json_text(examples):
    texts = [json.dumps(finding_to_json(one)) for one in examples]
    assert [finding_from_json(json.loads(text)) for text in texts] == list(examples)
    assert all(type(one.rank) is int and isinstance(hash(one), int) for one in examples)


def test_whatever_may_come_from_json_has_a_template():
    assert {kind.__name__ for kind in FINDING_KINDS.values() if kind not in TEMPLATES} == set()


def test_no_two_kinds_have_one_name():
    with pytest.raises(TypeError, match="two kinds"):

        @dataclass(frozen=True)
        class GivenArgument(Finding):
            """Of another module."""


@pytest.mark.parametrize("number", [float("inf"), float("-inf"), 1e-300, 3])
def test_any_number_comes_back(number):
    found = FINDING_KINDS["TimesExpected"](number)
    assert finding_from_json(json.loads(json.dumps(finding_to_json(found)))) == found


WRITTEN = {
    "is": "RightIn",
    "right": 4,
    "of": 6,
    "processes": False,
    "pattern": {"is": "HasValue", "argument": "n", "value": "1", "of": "length", "only": True},
}
TAUGHT = {"is": "Taught", "lessons": ["06", "07"]}


@pytest.mark.parametrize(
    "forged",
    [
        *(None, 3, "RightIn", [], {}, [WRITTEN], {"is": "Finding"}, {"is": "NoSuchKind"}, {"is": ["RightIn"]}),
        *(
            {"is": "NoMain", "more": 1},
            {name: WRITTEN[name] for name in list(WRITTEN)[:-1]},
            {**WRITTEN, "is": "NoMain"},
        ),
        *({**WRITTEN, "right": wrong} for wrong in (None, True, 4.0, "4", [4], {}, WRITTEN)),
        *({**WRITTEN, "processes": wrong} for wrong in (0, None, "False")),
        *({**WRITTEN, "pattern": wrong} for wrong in ("HasValue", {"is": "NoMain"}, [None])),
        *({**WRITTEN, "pattern": {**WRITTEN["pattern"], "of": wrong}} for wrong in ("width", None, ["length"])),
        *({**TAUGHT, "lessons": wrong} for wrong in ("06", ("06",), [6], ["x" * (LONGEST_FIELD + 1)], {"06": "07"})),
        {"is": "InCase", "mesh": [["x", 4, 2]], "given": [], "pod": ""},
        {"is": "InCase", "mesh": [["x", "4"]], "given": [], "pod": ""},
        {"is": "InCase", "mesh": [], "given": [{"is": "NoMain"}], "pod": ""},
        *({"is": "TimesExpected", "factor": wrong} for wrong in (True, "1.0", "infinity", [1.0])),
    ],
    ids=repr,
)
def test_what_is_no_finding_is_refused(forged):
    assert finding_from_json(WRITTEN) and finding_from_json(TAUGHT)
    with pytest.raises(ValueError):
        finding_from_json(forged)


def test_findings_in_one_another_without_end_are_refused():
    deep = finding_to_json(GivenArgument("n", "1"))
    for _ in range(5_000):
        deep = {**finding_to_json(InFirstCase(GivenArgument("n", "1"))), "finding": deep}
    with pytest.raises(ValueError):
        finding_from_json(deep)
