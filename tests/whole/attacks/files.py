"""Attacks with what is handed in itself: its texts, its cells by number and size, its files."""

import os
import secrets

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell, new_output
from whole.attacks.attack import EXHAUST, FOLDER, HANG, PAGE, Attack, falls, stands
from whole.attacks.result import (
    broke,
    calculating,
    calling,
    controlling,
    copied,
    either,
    grew,
    left,
    lost,
    marked_up,
    scripted,
    spoiled,
    swelled,
    undeserved,
)

LESSON = "01_mini.ipynb"
NO_LIMITS = "what a student hands in is parsed and rendered without limits"
RAW = "texts and outputs are rendered as they come"


def holding(*cells):
    """A hand-in with these cells at its end."""

    def write(folder, nb):
        nb.cells += cells
        nbformat.write(nb, folder / LESSON)

    return write


def code(source, outputs=()):
    """A code cell. (nbformat would look at each of a hundred thousand outputs, whenever this file is imported.)"""
    fixed = {"id": secrets.token_hex(4), "metadata": NotebookNode(), "execution_count": None}
    return NotebookNode(cell_type="code", source=source, outputs=list(outputs), **fixed)


def saying(*texts):
    return holding(*map(new_markdown_cell, texts))


def beside(write):
    """A hand-in with something else in its folder."""

    def written(folder, nb):
        nbformat.write(nb, folder / LESSON)
        write(folder)

    return written


def raw(change):
    """A hand-in whose file is this, made of what it should be."""
    return lambda folder, nb: (folder / LESSON).write_bytes(change(nbformat.writes(nb).encode()))


def sparse(folder):
    with open(folder / "data.bin", "wb") as file:
        file.truncate(3 << 30)


def swapped(folder, nb):
    """A link to the solution."""
    os.symlink(folder.parents[2] / "solutions/01_mini" / LESSON, folder / LESSON)


def odd_metadata(folder, nb):
    nb.metadata["kernelspec"] = {"name": "sh -c 'touch loot/mallory'", "display_name": "x", "language": "sh"}
    nb.cells[0].metadata["nbgrader"] = {"grade": True, "points": "NaN", "grade_id": 7}
    nbformat.write(nb, folder / LESSON)


def shown(**data):
    """A code cell that shows outputs of these kinds when it is run, and has them from before."""
    kinds = {name.replace("_", "/", 1).replace("_", "+"): value for name, value in data.items()}
    source = f"from IPython.display import display\ndisplay({kinds!r}, raw=True)"
    return holding(code(source, [new_output("display_data", kinds)]))


# As large as may be: what is larger is refused when it is read, and tries nothing else.
MANY_NAMES = [
    code("\n".join(f"def f{k}_{j}(): return f{(k * 7 + j) % 500}_{j}" for j in range(60))) for k in range(500)
]
MANY_LINES = "a\n" * 450_000
NESTED = b"[" * 200_000 + b"]" * 200_000


def attack(name, aim, handed_in, won, stock, **more):
    return Attack(name, aim, "", won, stock, solved=True, seconds=60, handed_in=handed_in, **more)


ATTACKS = (
    # On the page.
    attack(
        "a link whose scheme is spelled in entities",
        PAGE,
        saying(
            "[my derivation](java&#115;cript:document.title='HIT') [x](javascript&colon;document.title='HIT')",
            "[see here][ref]\n\n[ref]: &#x6a;avascript&#58;document.title='HIT'",
        ),
        either(broke, scripted),
        falls(RAW),
    ),
    attack(
        "a page in a link",
        PAGE,
        saying("[plot](d&#97;ta:text/html,<script>document.title='HIT'</script>) ![p](data:image/svg+xml,<svg/>)"),
        either(broke, scripted),
        falls(RAW),
        slow=True,
    ),
    attack(
        "pictures that call home",
        PAGE,
        saying("![t](http://mallory.example/pixel.png) ![l](/logout?mallory)", "<img src=//mallory.example/x>"),
        either(broke, calling),
        falls(RAW),
        slow=True,
    ),
    attack(
        "HTML in a text",
        PAGE,
        saying("<div id=mallory onclick=\"document.title='HIT'\">x</div>", "<svg><g id='mallory'/></svg>"),
        either(broke, marked_up, scripted),
        falls(RAW),
        slow=True,
    ),
    attack(
        "HTML under a picture's name",
        PAGE,
        shown(image_png='"><div id=mallory>', image_jpeg="<div id=mallory>", text_latex="$x$<div id=mallory>"),
        either(broke, marked_up),
        falls(RAW),
        slow=True,
    ),
    attack(
        "scripts among the outputs",
        PAGE,
        shown(
            application_javascript="document.title='HIT'",
            image_svg_xml="<svg id=mallory onload=\"document.title='HIT'\"/>",
            text_html="<div id=mallory><script>document.title='HIT'</script></div>",
        ),
        either(broke, marked_up),
        falls(RAW),
        slow=True,
    ),
    # In the folder.
    attack(
        "a web page beside the notebook",
        FOLDER,
        beside(lambda folder: (folder / "evil.html").write_text("<script>document.title='HIT'</script>")),
        either(broke, copied),
        falls("all that lies beside a notebook is copied"),
    ),
    attack(
        "a file of three gigabytes that takes no room",
        FOLDER,
        beside(sparse),
        either(broke, copied),
        falls("all that lies beside a notebook is copied"),
        slow=True,
    ),
    attack(
        "a pipe beside the notebook",
        FOLDER,
        beside(lambda folder: os.mkfifo(folder / "pipe")),
        either(broke, lost),
        falls("it stops at what cannot be copied"),
        slow=True,
    ),
    attack(
        "a link to the solution",
        FOLDER,
        swapped,
        undeserved,
        falls("links are followed"),
        slow=True,
    ),
    attack(
        "a file whose name is a formula",
        FOLDER,
        lambda folder, nb: (folder / '=HYPERLINK("http:mallory","click").ipynb').write_text("{"),
        either(broke, calculating),
        stands("it writes no table by itself"),
        slow=True,
    ),
    attack(
        "a file whose name writes to the terminal",
        FOLDER,
        lambda folder, nb: (folder / "\x1b[2J.ipynb").write_text("{"),
        either(broke, controlling),
        stands("it looks for one name only"),
        slow=True,
    ),
    attack(
        "JSON that means two things",
        FOLDER,
        raw(lambda text: text.replace(b'"cells"', b'"cells": [], "metadata": NaN, "cells"', 1)),
        either(broke, controlling),
        stands("the last of two keys counts"),
        slow=True,
    ),
    attack(
        "JSON without a floor",
        FOLDER,
        raw(lambda text: text.replace(b'"nbformat"', b'"deep": ' + NESTED + b', "nbformat"', 1)),
        either(broke, spoiled),
        falls("too much recursion ends it"),
        later=True,
        slow=True,
    ),
    attack(
        "metadata of another kind",
        FOLDER,
        odd_metadata,
        either(broke, left),
        falls("its marks are lost with its metadata"),
        slow=True,
    ),
    # Exhaust, and hang.
    attack(
        "a text that opens and never ends",
        HANG,
        saying(r"\begin{a}" * 55_000),
        either(broke, lost, spoiled),
        falls("the time is quadratic"),
        later=True,
        slow=True,
    ),
    attack(
        "functions that name each other",
        HANG,
        holding(*MANY_NAMES),
        either(broke, lost, spoiled),
        stands("it runs them, and looks at none"),
        later=True,
        slow=True,
    ),
    attack(
        "a cell of very many lines",
        EXHAUST,
        holding(code(MANY_LINES)),
        either(broke, grew, spoiled),
        falls(NO_LIMITS),
        later=True,
        slow=True,
    ),
    attack(
        "a hundred thousand outputs from before",
        EXHAUST,
        holding(code("1", [new_output("stream", text="x")] * 100_000)),
        either(broke, grew, swelled, lost),
        stands("they are cleared first"),
        slow=True,
    ),
)
