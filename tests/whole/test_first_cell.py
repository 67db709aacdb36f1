"""The first cell in fresh environments: it installs the course from a clone, and changes nothing that is there."""

import json
import os
import subprocess
import zipfile

import nbformat
import pytest
from whole.test_versions import uv

from grader.classroom.course.build import lessons
from grader.classroom.course.frame import bare, framed, titles
from grader.classroom.course.published import Published

# Colab's JAX, the locked one, and the newest, which on Python 3.11 is the locked one.
JAXES = ("jax==0.7.2", "jax==0.10.2", "jax")
PLACES = [(python, jax) for python in ("3.11", "3.12", "3.13") for jax in JAXES[: 2 if python == "3.11" else 3]]
WHERE = Published("owner/name", "v0.0-test")
NOTEBOOK = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for cell in json.loads(sys.argv[1]):
    print("well" if shell.run_cell(cell).success else "stopped")
"""
WORKS = """
check("case3", lambda a, b, *, mesh: jax.shard_map(lambda p, q: jax.lax.psum(p @ q, "x"), mesh=mesh,
                                                    in_specs=(P(None, "x"), P("x")), out_specs=P())(a, b))
"""


@pytest.fixture(scope="module")
def clone(root, tmp_path_factory):
    """The URL of a clone of this repository, with a tag, as pip takes it."""
    folder = tmp_path_factory.mktemp("clone") / "course"
    subprocess.run(["git", "clone", "--quiet", "--bare", str(root), str(folder)], check=True)
    subprocess.run(["git", "-C", str(folder), "tag", WHERE.tag], check=True)
    return f"git+file://{folder}@{WHERE.tag}"


@pytest.fixture(scope="module")
def cells(root, clone):
    """The first cell of lesson 07, as it is where the course is published at the clone; and the imports."""
    source = next(source for source in lessons(root) if source.stem == "07_matmul")
    nb = framed(bare(nbformat.read(source.with_suffix(".ipynb"), 4)), source.stem, titles([source]), WHERE)
    first, imports = [cell.source for cell in nb.cells if cell.cell_type == "code"][:2]
    return first.replace(WHERE.install, clone), imports


@pytest.fixture
def strangers(tmp_path):
    """A wheel of somebody else's `grader`."""
    wheel = tmp_path / "grader-1.2-py3-none-any.whl"
    about = "grader-1.2.dist-info"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("grader/__init__.py", "class Homework: pass\n")
        file.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: grader\nVersion: 1.2\n")
        file.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{about}/RECORD", "")
    return str(wheel)


@pytest.mark.slow
@pytest.mark.needs("uv")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("python, jax", PLACES)
def test_the_first_cell_works_there(python, jax, cells, strangers, tmp_path):
    first, imports = cells
    there = environment(tmp_path / "env", python, jax)
    before = packages(there)

    offline = notebook(there, first, PIP_NO_INDEX="1")
    assert "Is this machine online" in offline and "Traceback" not in offline, offline

    uv("pip", "install", "--python", there, strangers)
    assert "somebody else's" in notebook(there, first)
    notebook(there, "%pip uninstall -y grader")

    shown = notebook(there, first, first, imports, WORKS)
    assert shown.count("No accelerator: 8 simulated CPU devices.") == 2 and "stopped" not in shown, shown
    assert "4 of 4 points" in shown, shown
    assert before < packages(there)

    late = notebook(there, "import jax.numpy as jnp; jnp.ones(1)", first)
    assert "restart the kernel" in late and "Traceback" not in late and late.endswith("stopped\n")


def environment(folder, python, jax):
    """A fresh environment as a platform offers it: JAX, matplotlib, IPython, pip; returns its Python."""
    found = uv("python", "find", "--no-project", "--no-python-downloads", "--system", python)
    if found.returncode:
        pytest.skip(f"there is no Python {python} on this machine")
    assert uv("venv", "--quiet", "--seed", "--python", found.stdout.strip(), str(folder)).returncode == 0
    there = str(folder / "bin" / "python")
    installed = uv("pip", "install", "--quiet", "--python", there, jax, "matplotlib", "ipython")
    if installed.returncode:
        why = f"{jax} cannot be installed here: {installed.stderr.strip().splitlines()[-1]}"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(why)
    (stub,) = folder.glob("lib/python*/site-packages")
    (stub / "google" / "colab").mkdir(parents=True)
    return there


def packages(there):
    listed = uv("pip", "list", "--format", "json", "--python", there).stdout
    return {f"{package['name']}=={package['version']}" for package in json.loads(listed)}


def notebook(there, *sources, **environment):
    """What cells show, run in order in one kernel; after each whether it ended well."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "XLA_FLAGS")}
    command = [there, "-c", NOTEBOOK, json.dumps(sources)]
    elsewhere = os.path.dirname(there)  # in a checkout `grader` would be found
    done = subprocess.run(command, cwd=elsewhere, env=kept | environment, text=True, capture_output=True, timeout=400)
    return done.stdout + done.stderr * (done.returncode != 0)
