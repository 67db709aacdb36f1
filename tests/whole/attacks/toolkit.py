"""What every attack has at hand: a cell before it."""

from pathlib import Path

TOOLKIT = r'''
import base64, builtins, ctypes, dataclasses, gc, inspect, io, itertools, json, mmap, os, pickle, re, resource, shutil
import signal, socket, sqlite3, struct, subprocess, sys, tempfile, threading, time
import numpy as np, jax, jax.numpy as jnp
from pathlib import Path
from jax.sharding import NamedSharding, PartitionSpec as P
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
    from grader.exercises.collecting import collect
    everywhere("collect", lambda form, asked, given: [change(a) for a in collect(form, asked, given)])

def deliver(change):
    """Hand out other bytes as the program."""
    from grader.programs.program import Program
    answering(lambda answer: Program(change(getattr(answer, "artefact", b""))))

def rewritten(artefact, edit=lambda text: text, **fields):
    """The same artefact with another text, or other fields."""
    from jax._src.export import _export  # as jax.export writes it
    from jax.extend.mlir import ir
    from grader.jax_versions import mlir_context
    exported = jax.export.deserialize(bytearray(artefact))
    with mlir_context():
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


def places(room: Path, port: int, token: str) -> str:
    """The first lines of an attack's toolkit: where the baits are."""
    return f"ROOM = __import__('pathlib').Path({str(room)!r}); PORT = {port}; TOKEN = {token!r}\n"
