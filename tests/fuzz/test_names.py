"""Whatever name somebody chooses, nobody takes, hides, or doubles another's place, unless a line says so."""

from __future__ import annotations

import tempfile
import warnings
import zipfile
from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path

import fuzzing
import pytest
from handins import CELL, packed, text
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grader.classroom.handins.archive import Unreadable
from grader.classroom.handins.platforms import unpack
from grader.classroom.handins.roster import keep_senders, read_roster

LESSONS = ("07_matmul", "08_rings", "09_cost")
# As platforms name what somebody hands in, by the number of the lesson where that changes a student's number.
LAYOUTS = {
    "moodle": "{name}_{lesson}{key}_assignsubmission_file_/",
    "moodle-flat": "{name}_{lesson}{key}_assignsubmission_file_",
    "brightspace": "{lesson}{key}-5 - {name} - Jan 1, 2024 1000 AM/",
    "brightspace-flat": "{lesson}{key}-5 - {name} - Jan 1, 2024 1000 AM - ",
    "blackboard": "07 matmul_{name}_attempt_2024-01-01-10-00-00_",
    "canvas": "{name}_{key}_9{lesson}{key}_",
    "canvas-late": "{name}_LATE_{key}_9{lesson}{key}_",
    "google": "{name} - ",
}
HONEST = {"Alice A": 77, "Bob": 79, "Ünal Öz": 80, "carol": 81, "o'neill;x": 82}
MALLORY = 78
FILES = ("07_matmul.ipynb", "my work.ipynb", "hw.zip", "x.ipynb")
FULL_WIDTH = str.maketrans({chr(k): chr(k + 0xFEE0) for k in range(0x21, 0x7F)})
NAMES = st.sampled_from(sorted(HONEST))
MARKS = st.sampled_from("\u202e\u200f\u200b\u00ad\ufeff\x1b\x9b\n\t\r;,' _-./\\:")
WORDS = st.sampled_from(
    [
        *("_77", "_77_977", "_77_977_", "__77___977__", "_LATE", "_LATE_77_977_", "_assignsubmission_", " - ", " - x"),
        *("_{l}77_assignsubmission_file_", "_{l}77_assignsubmission_file_/q", " - Jan 1, 2024 1000 AM", "'=", "_2"),
        *(" - Jan 1, 2024 1000 AM - x", "_attempt_2024-01-01-10-00-00_", "_attempt_2099-01-01-10-00-00_x"),
    ]
)
KINDS = {
    "a platform's words": st.builds("{}{}".format, NAMES, WORDS),
    "words before it": st.builds(
        "{}{}".format, st.sampled_from(["x_", "12-34 - ", "t_", " - ", "submitted/", "07_matmul/", "../"]), NAMES
    ),
    "both": st.builds("{}{}{}".format, st.sampled_from(["x_", "12-34 - ", "t_", "_"]), NAMES, WORDS),
    "separators": st.builds(lambda name, mark: name.replace(" ", mark), NAMES, MARKS),
    "marks that are not seen": st.builds(
        lambda name, k, mark: name[:k] + mark + name[k:], NAMES, st.integers(0, 8), MARKS
    ),
    "look-alikes": NAMES.map(lambda name: name.replace("A", "А").replace("o", "о")),  # the second are Cyrillic
    "full width": NAMES.map(lambda name: name.translate(FULL_WIDTH)),
    "in capitals": NAMES.map(str.upper) | NAMES.map(str.lower),
    "composed otherwise": NAMES.map(lambda name: name.replace("Ü", "U\u0308").replace("Ö", "O\u0308")),
    "namesakes": NAMES,
    "empty": st.sampled_from(["", " ", ".", "..", "_", " - "]),
    "very long": st.builds(lambda name, k, mark: name + mark * k, NAMES, st.sampled_from([300, 15_000]), MARKS),
    "a folder's name": NAMES.map(lambda name: name.replace(" ", "_")),
    "any": st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12),
}
CHOSEN = st.one_of(*KINDS.values())


@dataclass(frozen=True)
class Sent:
    """One lesson's hand-ins: who, under which name, and with which file, in the order of the archive."""

    people: tuple[tuple[int, str, str], ...]
    is_folder: bool


@dataclass
class Class:
    """What lies in submitted/ after each archive, by whose it is."""

    submitted: Path
    layout: str
    homes: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))

    def collect(self, lesson: str, sent: Sent) -> None:
        """Lay out an archive, and say what went wrong without a line about it."""
        if self.layout == "blackboard":  # where logins are unique
            sent = replace(sent, people=tuple(p for p in sent.people if p[0] != MALLORY or p[1] not in HONEST))
        place = self._archive(lesson, sent)
        try:
            receipts = unpack(place, lesson, self.submitted, lessons={*LESSONS}, roster=read_roster(self.submitted))
        except Unreadable:
            return
        keep_senders(self.submitted, lesson, {one.student: one.sender for one in receipts if one.sender})
        said = {one.student for one in receipts if one.problem or one.doubt}
        came = set()
        for key, folder in self._laid(lesson):
            came.add(key)
            assert {key} == {k for k, homes in self.homes.items() if folder in homes} | {key} or folder in said, folder
            assert key == MALLORY or self.homes[key] <= {folder} or folder in said, folder
            self.homes[key].add(folder)
        assert {key for key, *_ in sent.people} == came or said, "somebody is hidden"

    def _archive(self, lesson: str, sent: Sent) -> Path:
        place = self.submitted.parent / f"{lesson}-{self.layout}"
        files = []
        for key, name, file in sent.people:
            start = LAYOUTS[self.layout].format(name=name, key=key, lesson=int(lesson[:2]))
            content = text(cells=[{**CELL, "source": f"owner {key}"}]).encode()
            files.append((start + file, packed({"x.ipynb": content}) if file.endswith(".zip") else content))
        if sent.is_folder and all(len(part.encode()) < 250 for name, _ in files for part in name.split("/")):
            for name, content in files:
                target = place / name.replace("../", "").lstrip("/")
                target.parent.mkdir(parents=True, exist_ok=True)
                if target.exists():  # as Drive does
                    target = target.with_stem(f"{target.stem} (1)")
                target.write_bytes(content)
            return place
        with zipfile.ZipFile(place.with_suffix(".zip"), "w") as archive, warnings.catch_warnings(action="ignore"):
            for name, content in files:
                archive.writestr(name, content)
        return place.with_suffix(".zip")

    def _laid(self, lesson: str) -> list[tuple[int, str]]:
        """Whose notebooks lie in which student's folder."""
        found = self.submitted.glob(f"*/{lesson}/*.ipynb")
        return [(int(one.read_text().split("owner ")[1][:2]), one.parts[-3]) for one in found]


@st.composite
def archives(draw: st.DrawFn) -> list[Sent]:
    """Three lessons; honest students keep their names, and Mallory may take another for each."""
    sent = []
    for _ in LESSONS:
        honest = draw(st.lists(NAMES, max_size=4, unique=True))
        people = [(HONEST[name], name, draw(st.sampled_from(FILES))) for name in honest]
        people += [(MALLORY, draw(CHOSEN), draw(st.sampled_from(FILES))) for _ in range(draw(st.integers(0, 1)))]
        sent.append(Sent(tuple(draw(st.permutations(people))), draw(st.booleans())))
    return sent


@pytest.mark.parametrize("layout", LAYOUTS)
def test_nobodys_place_is_given_away_without_a_line(layout):
    @settings(max_examples=60 * fuzzing.TIMES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(archives())
    def holds(sent: list[Sent]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            one = Class(Path(folder, "submitted"), layout)
            for lesson, archive in zip(LESSONS, sent, strict=True):
                one.collect(lesson, archive)

    holds()
