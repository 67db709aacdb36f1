"""How a process that grades begins. What is done here comes before all that takes long to import."""

import gc
import multiprocessing
import os
import sys
import threading
from multiprocessing import connection
from multiprocessing.process import BaseProcess

SELDOM = 20_000  # new objects between two looks for garbage: notebooks are many objects, and few of them cycles


def without_addresses() -> None:
    """Have jsonschema, by which notebooks are validated, do without its grammar of addresses.

    Reading it takes a second, and no notebook has an address to check.
    """
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]  # None: an import fails, as if not there


def begin() -> None:
    """For a process of a pool; it ends when the one that started it has ended."""
    without_addresses()
    gc.set_threshold(SELDOM)
    if parent := multiprocessing.parent_process():
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: BaseProcess) -> None:
    connection.wait([parent.sentinel])
    os._exit(1)
