"""An IPython shell inside the worker, whose outputs are kept in notebook form and bounded."""

from __future__ import annotations

import base64
import json
import sys
from typing import Any

from grader.classroom.inside.limits import OUTPUT

CUT = f"\n[The rest is left out: a notebook may show {OUTPUT:,} characters.]\n"


class Recorder:
    """The outputs of the running cell, until the notebook's share is used up."""

    def __init__(self) -> None:
        self.left = OUTPUT
        self.outputs: list[dict[str, Any]] = []

    def take(self) -> list[dict[str, Any]]:
        outputs, self.outputs = self.outputs, []
        return [{**output, "text": "".join(output["text"])} if "text" in output else output for output in outputs]

    def write(self, name: str, text: str) -> None:
        text = str(text)
        if self.left <= 0 or not text:
            return
        part = text if len(text) <= self.left else text[: self.left] + CUT
        self.left -= len(text)
        if self.outputs and self.outputs[-1].get("name") == name:
            self.outputs[-1]["text"].append(part)
        else:
            self.outputs.append({"output_type": "stream", "name": name, "text": [part]})

    def add(self, output: dict[str, Any]) -> None:
        size = len(json.dumps(output, default=str))
        if self.left > 0:
            self.outputs.append(
                output if size <= self.left else {"output_type": "stream", "name": "stdout", "text": [CUT]}
            )
        self.left -= size


class Stream:
    """A stand-in for sys.stdout or sys.stderr that records."""

    encoding, errors, closed = "utf-8", "replace", False

    def __init__(self, recorder: Recorder, name: str):
        self.recorder, self.name = recorder, name

    def write(self, text: str) -> int:
        self.recorder.write(self.name, text)
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return False


def make_shell(recorder: Recorder) -> Any:
    """An IPython shell whose displays, results and errors go to the recorder."""
    from IPython.core.displayhook import DisplayHook
    from IPython.core.displaypub import DisplayPublisher
    from IPython.core.interactiveshell import InteractiveShell

    class Publisher(DisplayPublisher):
        def publish(self, data: Any, metadata: Any = None, *_: Any, **__: Any) -> None:
            recorder.add({"output_type": "display_data", "data": _texts(data), "metadata": metadata or {}})

        def clear_output(self, wait: bool = False) -> None:
            recorder.take()

    class Hook(DisplayHook):
        def write_output_prompt(self) -> None:
            pass

        def write_format_data(self, format_dict: Any, md_dict: Any = None) -> None:
            recorder.add(
                {
                    "output_type": "execute_result",
                    "data": _texts(format_dict),
                    "metadata": md_dict or {},
                    "execution_count": None,
                }
            )

        def finish_displayhook(self) -> None:
            pass

    InteractiveShell.display_pub_class = Publisher  # type: ignore[assignment]  # a trait, which takes a class
    InteractiveShell.displayhook_class = Hook  # type: ignore[assignment]
    shell: Any = InteractiveShell.instance()
    shell.history_manager.enabled = False
    shell.ask_exit = sys.exit  # `exit()` in a cell ends that cell
    shell._showtraceback = lambda kind, value, lines: recorder.add(
        {
            "output_type": "error",
            "ename": getattr(kind, "__name__", str(kind)),
            "evalue": str(value)[:2000],
            "traceback": [line[:4000] for line in lines],
        }
    )
    return shell


def _texts(data: dict[str, Any]) -> dict[str, Any]:
    """Pictures as a notebook file keeps them: base64."""
    return {
        kind: base64.b64encode(value).decode() if isinstance(value, bytes) else value for kind, value in data.items()
    }
