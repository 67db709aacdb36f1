"""Run a student's notebook, and answer for each check what `exercises.answers.collect` makes of it.

Students' code runs in this same process. It is given the cells and what each check asks (never a program's values,
seeds or expected results), and writes one JSON line for every cell and every check as soon as it has it, so that what
hangs later loses nothing.
"""

from __future__ import annotations

import functools
import json
import signal
import sys
from collections.abc import Callable
from typing import Any, TextIO

import jax
import PIL.Image

from grader.classroom.inside.limits import INTERRUPT_SECONDS, REPORTED, Limits
from grader.classroom.inside.recorder import CUT, Recorder, Stream, make_shell
from grader.classroom.inside.role import WARM, Role, import_all
from grader.classroom.inside.shown import modules

SHELL = (
    "IPython.core.logger",
    "IPython.core.magics",
    "IPython.core.oinspect",
    "bdb",
    "grader.classroom.inside.wire",
    "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_svg",
    "matplotlib.pyplot",
    "matplotlib_inline.backend_inline",
)


def warm() -> None:
    """Import what lessons use, and what JAX, matplotlib and IPython import when they are first used."""
    _shell()  # matplotlib shows figures in the shell that it finds when it is imported
    import_all((*WARM, *SHELL, *modules()))
    PIL.Image.init()
    _show_an_error()


def _show_an_error() -> None:
    """Have IPython show an error of JAX's to nobody: it reads whole each file that such errors lead through, which
    takes half a second."""
    shell, _ = _shell()
    with shell.builtin_trap:  # as in a cell: JAX hides its lines from IPython, where else it leaves them out
        try:
            jax.jit(lambda a: jax.lax.psum(a, "nowhere")).trace(jax.ShapeDtypeStruct((), "float32"))
        except NameError as error:
            shell.InteractiveTB.structured_traceback(type(error), error, error.__traceback__)
            shell.InteractiveTB.tb = None


@functools.cache
def _shell() -> tuple[Any, Recorder]:
    recorder = Recorder()
    return make_shell(recorder), recorder


def timed(seconds: float, action: Callable[[], Any]) -> Any:
    """Run an action, interrupted by TimeoutError when its time is over (if it runs Python at all)."""

    def too_long(*_: Any) -> None:
        raise TimeoutError(f"stopped after {seconds:g} seconds, which is all that a cell may take")

    signal.signal(signal.SIGALRM, too_long)
    signal.setitimer(signal.ITIMER_REAL, seconds, INTERRUPT_SECONDS)
    try:
        return action()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def run_cell(shell: Any, recorder: Recorder, source: str, seconds: float) -> list[dict[str, Any]]:
    """The outputs of one cell; an error is one of them."""
    try:
        timed(seconds, lambda: shell.run_cell(source, store_history=True))
    except BaseException as error:  # what IPython lets through must not end the worker
        recorder.write("stderr", f"{type(error).__name__}: {error}\n")
    return recorder.take()


def answers(shell: Any, form: str, asks: Any, expression: str, seconds: float) -> list[Any]:
    """What the notebook's names answer to the asks of one check."""
    from grader.exercises.answers import Problem
    from grader.exercises.collecting import collect

    def collected() -> list[Any]:
        try:
            answer = eval(expression, shell.user_ns)
        except NameError:
            return [Problem("missing")] * len(asks)
        return collect(form, asks, answer)

    try:
        return timed(seconds, collected)
    except BaseException as error:  # SystemExit and KeyboardInterrupt too: a hand-in must not end its worker
        return [Problem("error", type(error).__name__, str(error)[:4000])] * len(asks)


def facts_to_watch(shell: Any, step: dict[str, Any], seconds: float) -> Any:
    """What there is to watch of a notebook's program on a case, as plain types; None where it stops with an error."""
    from grader.exercises.as_json import question_from_json
    from grader.replays.facts import fitting
    from grader.replays.on_case import on_case, opening

    def facts() -> Any:
        run = on_case(eval(step["expression"], shell.user_ns), question_from_json(step["watch"]))
        return fitting(step["check"], opening(run, step["missed"]), "", run) if run.frames else None

    try:
        return timed(seconds, facts)
    except BaseException:  # the card says why
        return None


def main(questions: TextIO, replies: TextIO) -> None:
    """Run the job that is the one line of `questions`."""
    job = json.loads(questions.readline())
    questions.close()
    shell, recorder = _shell()

    from grader.arrays.devices import prepare
    from grader.classroom.inside.wire import ORIGINS
    from grader.exercises.answers import Problem, origins_of
    from grader.exercises.as_json import question_from_json, to_json
    from grader.findings.problems import Refusal
    from grader.jax_versions import one_mlir_context

    too_long = Problem("refused", refusal=Refusal("too large", (str(Limits.line >> 20),)))
    prepare()  # devices start when they are first used, which tables never do
    sys.stdout, sys.stderr = Stream(recorder, "stdout"), Stream(recorder, "stderr")

    def say(most: int, instead: Any, **message: Any) -> None:
        """Write a message whose last part is replaced where it would be too long."""
        line = json.dumps(message, default=str)
        if len(line) > most:
            line = json.dumps({**message, [*message][-1]: instead}, default=str)
        replies.write(line + "\n")
        replies.flush()

    with one_mlir_context():
        for number, step in enumerate(job["steps"]):
            if "source" in step:
                outputs = run_cell(shell, recorder, step["source"], job["cell_seconds"])
                say(REPORTED, [{"output_type": "stream", "name": "stdout", "text": CUT}], cell=number, outputs=outputs)
            elif "watch" in step:
                say(REPORTED, None, check=step["check"], answers=facts_to_watch(shell, step, job["cell_seconds"]))
            else:
                asks = question_from_json(step["asks"])
                values = answers(shell, step["form"], asks, step["expression"], job["cell_seconds"])
                recorder.take()
                origins = [ORIGINS.write(origins_of(value)) for value in values]
                say(REPORTED, [], origins_of=step["check"], origins=origins)
                say(Limits.line, to_json([too_long] * len(asks)), check=step["check"], answers=to_json(values))
    say(REPORTED, True, end=True)


ROLE = Role(main, warm)
