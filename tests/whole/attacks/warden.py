"""Inside the laboratory, the first process: it lays out baits, starts the one that grades, and watches."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import secrets
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import mini
from whole.attacks import BY_NAME
from whole.attacks.machine import INSIDE, STUDENT, files, marked, network_up, processes, quiet, read_only, writable
from whole.attacks.result import HIDDEN, Result
from whole.attacks.toolkit import places


def laboratory(which: str, room: Path) -> None:
    warden = Warden(which, room)
    for line in sys.stdin:
        name = json.loads(line)
        if name is None:
            break
        print(json.dumps(warden.run(name)), flush=True)
    print(json.dumps(warden.rest()), flush=True)
    os._exit(0)  # and all that is left here ends with it


class Warden:
    """Process 1 of the lab."""

    def __init__(self, which: str, room: Path):
        assert os.getpid() == 1, "only in namespaces of its own"
        self.which, self.room = which, room
        self.token, self.port = secrets.token_hex(4), 20_000 + secrets.randbelow(10_000)
        self.seed = 10**8 + secrets.randbelow(10**8)
        self.knocks: list[str] = []
        self.grader: subprocess.Popen[str] | None = None
        read_only(room)
        self.uppers = [self._overlay(k, folder) for k, folder in enumerate(writable())]
        quiet("mount", "-t", "tmpfs", "-o", "size=512m", "tmpfs", "/dev/shm")
        network_up()
        for folder in ("home/.ssh", "home/.cache", "loot", "tmp"):
            (room / folder).mkdir(parents=True)
        self._baits()
        self._doors()

    def _overlay(self, number: int, folder: Path) -> Path:
        """From here on, what is written into `folder` is written elsewhere."""
        upper, work = self.room / f"upper{number}", self.room / f"work{number}"
        upper.mkdir()
        work.mkdir()
        options = f"lowerdir={folder},upperdir={upper},workdir={work}"
        if not (
            quiet("mount", "-t", "overlay", "overlay", "-o", options, str(folder))
            or quiet("mount", "-t", "overlay", "overlay", "-o", options + ",userxattr", str(folder))
        ):
            raise RuntimeError(f"no overlay can be put over {folder}: attacks would really write there")
        return upper

    def canary(self, name: str) -> str:
        return f"canary-{name}-{self.token}"

    def _baits(self) -> None:
        (self.room / "home/.ssh/id_ed25519").write_text(self.canary("key"))
        (self.room / "secret.txt").write_text(self.canary("secret"))
        Path("/dev/shm/bait").write_text(self.canary("memory"))
        with tempfile.TemporaryFile("w+", dir=self.room) as open_file:
            open_file.write(self.canary("file"))
            open_file.flush()
            subprocess.Popen(["sh", "-c", f"sleep 100000; : {self.canary('cmdline')}"], stdin=open_file)
        libc = ctypes.CDLL(None)
        libc.shmat.restype = ctypes.c_void_p
        text = self.canary("shm").encode()
        ctypes.memmove(libc.shmat(libc.shmget(0, 100, 0o1666), None, 0), text, len(text))
        libc.syscall(250, 1, None)  # a session keyring of one's own, gone with the lab
        libc.syscall(248, b"user", b"bait", self.canary("keyring").encode(), len(self.canary("keyring")), -3)

    def _doors(self) -> None:
        """Doors outside; whoever knocks is heard, and told a canary."""
        unix = [socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)]
        unix[0].bind("\0bait")
        unix[1].bind(str(self.room / "socket"))
        for door in unix:
            door.listen()
        doors = {
            "a port": socket.create_server(("127.0.0.1", self.port)),
            "an abstract socket": unix[0],
            "a socket": unix[1],
        }
        with contextlib.suppress(OSError):
            doors["the world"] = socket.create_server(("203.0.113.7", self.port))
        letters = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        letters.bind(("127.0.0.1", self.port))

        def serve(name: str, door: socket.socket) -> None:
            while True:
                caller, _ = door.accept()
                self.knocks.append(name)
                with contextlib.suppress(OSError), caller:
                    caller.send(self.canary("socket").encode())

        def receive() -> None:
            while True:
                letters.recv(100)
                self.knocks.append("a datagram")

        for name, door in doors.items():
            threading.Thread(target=serve, args=(name, door), daemon=True).start()
        threading.Thread(target=receive, daemon=True).start()

    def _fresh(self) -> None:
        """A course as if nothing had happened."""
        course = self.room / "course"
        quiet("rm", "-rf", str(course))
        shutil.copytree(self.room / "fresh", course)
        ben = course / "submitted/ben" / mini.LESSON / f"{mini.LESSON}.ipynb"
        ben.parent.mkdir(parents=True)
        solution = (course / "solutions" / mini.LESSON / f"{mini.LESSON}.ipynb").read_text()
        ben.write_text(solution.replace("def case3", f"# {self.canary('another')}\\ndef case3"))
        with sqlite3.connect(course / "gradebook.db") as book:
            book.execute("insert into student (id, email) values ('ben', ?)", [self.canary("gradebook")])
        book.close()

    def _start(self) -> None:
        cache = Path(os.path.expanduser("~/.cache/matplotlib"))
        if cache.exists() and not (self.room / "home/.cache/matplotlib").exists():
            shutil.copytree(cache, self.room / "home/.cache/matplotlib")
        environment = {
            **os.environ,
            "HOME": str(self.room / "home"),
            "TMPDIR": str(self.room / "tmp"),
            "GRADER_TOKEN": self.canary("environment"),
            "SEED": str(self.seed),
        }
        self.log = open(self.room / "log", "a")  # noqa: SIM115
        self.grader = subprocess.Popen(
            [*INSIDE, "grade", self.which, str(self.room)],
            text=True,
            cwd=self.room,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            start_new_session=True,
        )
        self.grader.stdout.readline()

    def run(self, name: str) -> dict[str, Any]:
        self._fresh()
        if self.grader is None:
            self._start()
        attack = BY_NAME.get(name)
        self.knocks.clear()
        patience = (
            40
            if self.which == "stock"
            else (attack.seconds if attack else 30) + 25 + 20 * bool(attack and (attack.later or attack.after))
        )
        with Watch(self) as watch:
            started = time.monotonic()
            reply = self._asked([name, places(self.room, self.port, self.token)], time.monotonic() + patience, watch)
            seconds = time.monotonic() - started
        left = self._left()
        words = reply.get("text", "") + reply.get("words", "")
        found = re.findall(rf"canary-(\w+)-{self.token}", words) + ["seed"] * (str(self.seed) in words)
        result = (
            asdict(
                Result(
                    seconds=seconds,
                    canaries=tuple(sorted(set(found))),
                    left=tuple(left),
                    reached=tuple(sorted(set(self.knocks))),
                    **watch.most(),
                )
            )
            | reply
        )
        return result | {"dirty": bool(self.grader is None or left or result["raised"])}

    def _asked(self, question: Any, deadline: float, watch: Watch) -> dict[str, Any]:
        lines: list[str] = []

        def ask() -> None:
            with contextlib.suppress(OSError, ValueError):
                self.grader.stdin.write(json.dumps(question) + "\n")
                self.grader.stdin.flush()
                lines.append(self.grader.stdout.readline())

        asking = threading.Thread(target=ask, daemon=True)
        asking.start()
        while asking.is_alive() and time.monotonic() < deadline and not watch.stopped:
            asking.join(0.05)
        if lines and lines[0]:
            return json.loads(lines[0])
        why = (
            "it took too much memory"
            if watch.stopped
            else "it is still running"
            if asking.is_alive()
            else f"it ended, status {self.grader.wait()}"
        )
        self.grader = None
        return {"raised": why}

    def _left(self) -> list[str]:
        """Files and processes of an attacker's that are still there."""
        for patience in (0, 0.05, 0.3):  # one that has been killed takes a moment to be gone
            time.sleep(patience)
            if not (names := [f"process {p}" for p, name in processes() if name in ("mallory", "sleep 98765")]):
                break
        for top in (*self.uppers, *(self.room / f for f in ("home", "loot")), Path("/dev/shm"), self.room / "course"):
            names += [
                str(path).removeprefix(f"{self.room}/")
                for path in files(top)
                if STUDENT not in path.parent.parts and marked(path)
            ]
        with sqlite3.connect(self.room / "course/gradebook.db") as book:
            if book.execute("pragma user_version").fetchone() != (0,):
                names.append("gradebook.db")
        book.close()
        return names

    def rest(self) -> list[str]:
        """What is there when the grader has ended in its own way."""
        if self.grader is not None:
            self.grader.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.grader.wait(10)
        time.sleep(0.3)
        bystander = self.canary("cmdline")
        here = [name for p, name in processes() if p != 1 and bystander not in name and name != "sleep 100000"]
        return here + [str(path) for top in (self.room / "tmp", *self.uppers) for path in files(top)]


class Watch:
    """Looks at the whole lab, ten times a second, and ends everything in it before it gets too large."""

    def __init__(self, warden: Warden):
        self.warden, self.stopped, self.done = warden, False, threading.Event()
        self.first = self._now()
        self.highest = self.first
        self.thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Watch:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.done.set()
        self.thread.join()

    def _look(self) -> None:
        while not self.done.wait(0.1):
            now = self._now()
            self.highest = tuple(map(max, now, self.highest))
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.warden.port + 1), 0.05):
                self.warden.knocks.append("a port of the student's")
            if now[0] - self.first[0] > HIDDEN + (300 << 20):
                self.stopped = True
                os.kill(-1, signal.SIGKILL)  # all of the lab but this process, the first

    @staticmethod
    def _now() -> tuple[int, int, int]:
        """Memory, processes and threads of the whole lab."""
        memory = count = threads = 0
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError, StopIteration):
                status = (process / "status").read_text()
                if process.name == "1" or "\nState:\tZ" in status:
                    continue
                count += 1
                threads += int(re.search(r"Threads:\t(\d+)", status)[1])
                memory += sum(map(int, re.findall(r"Rss(?:Anon|Shmem):\s+(\d+)", status))) << 10
        return memory, count, threads

    def most(self) -> dict[str, int]:
        differences = (high - low for high, low in zip(self.highest, self.first, strict=True))
        return dict(zip(("memory", "processes", "threads"), differences, strict=True))
