"""Compiles one program for a pod, in a process of its own: `python -P alone.py FOLDER`. It needs JAX and libtpu only.

FOLDER holds `request.json` and `program`, the bytes of `jax.export`; `answer.json` is written beside them. The process
is the compiler's alone: libtpu takes all of it, and may end it.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

MEMORY = ("argument", "output", "temp", "alias", "peak_memory", "generated_code")


def main(folder: Path) -> None:
    request = json.loads((folder / "request.json").read_text())
    answer = compile_alone(request, (folder / "program").read_bytes())
    (folder / "unfinished").write_text(json.dumps(answer))
    (folder / "unfinished").rename(folder / "answer.json")


def compile_alone(request: dict[str, Any], program: bytes) -> dict[str, Any]:
    """What the compiler makes of a program: its text and its memory, or its refusal."""
    import jax
    import numpy as np
    from jax import export
    from jax.experimental import topologies
    from jax.sharding import AxisType, Mesh, NamedSharding
    from jax.sharding import PartitionSpec as P

    jax.config.update("jax_traceback_in_locations_limit", 0)  # this file's lines are none of the program's
    pod = topologies.get_topology_desc(platform="tpu", topology_name=request["pod"])
    devices: list[Any] = pod.devices
    by_id = {device.id: device for device in devices}
    names, sizes = list(request["mesh"]), list(request["mesh"].values())
    places = np.array([by_id[k] for k in request["order"]]).reshape(sizes)
    mesh = Mesh(places, names, axis_types=(AxisType.Auto,) * len(names))
    leaves = [
        jax.ShapeDtypeStruct(shape, _dtype(dtype), sharding=NamedSharding(mesh, P(*(_entry(part) for part in spec))))
        for shape, dtype, spec in request["arguments"]
    ]
    exported = export.deserialize(bytearray(program))

    def call(*arrays: Any) -> Any:
        return exported.call(*jax.tree.unflatten(exported.in_tree, arrays)[0])

    options: dict[str, Any] = {"donate_argnums": tuple(request["donated"])}
    if results := request.get("results"):  # else the compiler would choose how results are sharded
        options["out_shardings"] = tuple(
            None if spec is None else NamedSharding(mesh, P(*map(_entry, spec))) for spec in results
        )
    lowered = jax.jit(call, **options).lower(*leaves)
    start = time.monotonic()
    try:
        result = lowered.compile()
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        return {"refusal": str(error), "seconds": time.monotonic() - start}
    memory: Any = result.memory_analysis()
    return {
        "seconds": time.monotonic() - start,
        "memory": {
            part: getattr(memory, f"{part}_in_bytes", None) or getattr(memory, f"{part}_size_in_bytes", 0)
            for part in MEMORY
        },
        "text": result.as_text(),
    }


def _dtype(name: str) -> Any:
    """A dtype by its name; those of random keys are none of NumPy's."""
    import jax

    keys = {"key<fry>": "threefry2x32", "key<rbg>": "rbg", "key<urbg>": "unsafe_rbg"}
    return jax.random.key(0, impl=keys[name]).dtype if name in keys else name


def _entry(part: Any) -> Any:
    return tuple(part) if isinstance(part, list) else part


if __name__ == "__main__":
    main(Path(sys.argv[1]))
