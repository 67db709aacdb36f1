"""What the laboratory does to, and asks of, the machine that it is."""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import os
import site
import socket
import struct
import subprocess
import sys
from pathlib import Path

INSIDE = [sys.executable, "-P", "-m", "whole.attacks"]  # what runs inside, whoever may write to where it starts
STUDENT = "mallory"
MARK = "mallory was here"  # in whatever an attack leaves behind


def read_only(room: Path) -> None:
    """From here on, nothing on any disc can be written to but the room."""
    for args in (("--make-rprivate", "/"), ("--bind", str(room), str(room))):
        if not quiet("mount", *args):
            raise RuntimeError("the machine's discs cannot be made read-only here: attacks would really write to them")
    mounts = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for mount in mounts:
        place, options, kind = mount[4], mount[5].split(","), mount[mount.index("-") + 1]
        if kind in ("proc", "sysfs", "devtmpfs", "devpts", "cgroup", "cgroup2") or place == str(room):
            continue
        kept = [o for o in options if o in ("nosuid", "nodev", "noexec", "noatime", "relatime", "nodiratime")]
        if not quiet("mount", "-o", ",".join(["remount", "bind", "ro", *kept]), place) and place == "/":
            raise RuntimeError("the machine's disc cannot be made read-only here: attacks would really write to it")


def writable() -> list[Path]:
    """The folders outside the room that an attack may try to write to: the packages, and the grader itself."""
    wanted = sorted(
        {Path(p).resolve() for p in site.getsitepackages() if Path(p).exists()}
        | {Path(importlib.util.find_spec("grader").origin).resolve().parents[1]}
    )
    return [p for k, p in enumerate(wanted) if not any(p.is_relative_to(other) for other in wanted[:k])]


def quiet(*command: str) -> bool:
    return subprocess.run(command, capture_output=True).returncode == 0


def network_up() -> None:
    """The loopback, and on it an address that stands for the world outside."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_:
        fcntl.ioctl(any_, 0x8914, struct.pack("16sH14x", b"lo", 0x41))  # SIOCSIFFLAGS: up, running
        address = struct.pack("16sHH4s8x", b"lo:1", socket.AF_INET, 0, socket.inet_aton("203.0.113.7"))
        fcntl.ioctl(any_, 0x8916, address)  # SIOCSIFADDR


def processes() -> list[tuple[int, str]]:
    """Every living process of the lab: its number, and its name or command."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if ") Z" not in (process / "stat").read_text():
                name = (process / "comm").read_text().strip()
                command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                found.append((int(process.name), name if name == "mallory" else command))
    return found


def files(top: Path) -> list[Path]:
    """All files and links below a folder, but not in depths where no path leads."""
    found, folders = [], [top]
    while folders:
        with contextlib.suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                (folders if entry.is_dir(follow_symlinks=False) else found).append(Path(entry.path))
    return found


def marked(path: Path) -> bool:
    if STUDENT in path.name:
        return True
    with contextlib.suppress(OSError):
        return path.is_file() and path.stat().st_size < 1 << 20 and MARK in path.read_text(errors="replace")
    return False
