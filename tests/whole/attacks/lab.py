"""The laboratory: what runs the attacks, seen from outside.

`Lab` runs them, against this grader or stock nbgrader, in namespaces of its own (processes, network, IPC, mounts
with an overlay on everything they might write to): what an attack can reach there is bait, and a `kill(-1)` or a
changed site-packages ends with the lab. `python -m whole.attacks` is what runs inside it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from whole.attacks.machine import INSIDE, quiet
from whole.attacks.result import Result

from grader.classroom.walls import bubblewrap

TESTS = Path(__file__).parents[2]
UNSHARE = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--net", "--ipc"]


class Lab:
    """A place to run attacks against `which` ("ours" or "stock"), started when first needed and after every harm."""

    def __init__(self, which: str, course: Path):
        self.which, self.course = which, course
        self.process: subprocess.Popen[str] | None = None
        self.room = ""

    @staticmethod
    def missing() -> str:
        """Why there can be no lab on this machine; "" when there can."""
        if not shutil.which("unshare"):
            return "attacks run in namespaces of their own, and there is no `unshare` here"
        walls = [] if bubblewrap.missing() else bubblewrap.command(["true"])  # which can stand outside and not in there
        tried = subprocess.run([*_unshare(), *(walls or ["true"])], capture_output=True, text=True, env=os.environ)
        return tried.returncode and f"attacks run in namespaces of their own: {tried.stderr.strip()}" or ""

    def run(self, attack: str) -> Result:
        """Run an attack, by name ("" for an honest hand-in)."""
        if self.process is None:
            self.room = tempfile.mkdtemp(prefix="attacks-", dir="/var/tmp")
            shutil.copytree(self.course, Path(self.room, "fresh"), symlinks=True)
            env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": _path()}
            env.pop("PYTEST_CURRENT_TEST", None)  # a kernel that sees it does not listen to its descriptors
            self.process = subprocess.Popen(
                [*_unshare(), *INSIDE, "lab", self.which, self.room],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=env,
                cwd="/",  # the one here will lie under an overlay
                start_new_session=True,  # a Ctrl-C is for who runs the lab
            )
        self.process.stdin.write(json.dumps(attack) + "\n")
        self.process.stdin.flush()
        if not (line := self.process.stdout.readline()):
            self.close()
            raise RuntimeError(f"the lab itself ended in “{attack}”")
        result = json.loads(line)
        if result.pop("dirty"):
            self.close()
        return Result(**{k: tuple(v) if isinstance(v, list) else v for k, v in result.items()})

    def close(self) -> list[str]:
        """End the lab; returns what was still there when its grader had ended by itself: processes and files."""
        process, self.process = self.process, None
        if process is None:
            return []
        rest = process.communicate(json.dumps(None) + "\n")[0] if process.poll() is None else ""
        quiet("rm", "-rf", self.room)
        return json.loads(rest.splitlines()[-1]) if rest.strip() else []

    def end(self) -> None:
        """End the lab at once, in the middle of whatever is tried."""
        if self.process is not None:
            self.process.kill()  # and with it, all that is inside
            self.process.wait()
        self.close()


def _path() -> str:
    """Where Python finds these tests, whatever folder it starts in."""
    return os.pathsep.join(filter(None, (str(TESTS), os.environ.get("PYTHONPATH"))))


def _unshare() -> list[str]:
    return UNSHARE if os.geteuid() == 0 else [UNSHARE[0], "--user", "--map-root-user", *UNSHARE[1:]]
