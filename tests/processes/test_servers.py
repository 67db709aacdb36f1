"""Servers: they answer in messages, one question after the other, and are started again when they have ended."""

import os

import pytest

from grader.processes.servers import NoProcesses, Server

COUNTING = """
import os
from grader.processes.servers import serve

def answer(question, tell):
    for number in range(question):
        tell([os.getpid(), number])
    if question < 0:
        os._exit(1)

serve(answer)
"""


@pytest.fixture
def server(tmp_path, monkeypatch):
    (tmp_path / "counting.py").write_text(COUNTING)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    return Server("counting")


def numbers(messages):
    return [number for _, number in messages]


def test_one_process_answers_one_question_after_the_other(server):
    first, second = list(server.ask(2)), list(server.ask(3))
    assert numbers(first) == [0, 1] and numbers(second) == [0, 1, 2]
    assert len({pid for pid, _ in [*first, *second]}) == 1


def test_an_answer_that_nobody_hears_to_its_end_disturbs_no_other(server):
    answer = server.ask(5)
    next(answer)
    answer.close()
    assert numbers(server.ask(2)) == [0, 1]


def test_a_server_that_ends_is_said_and_started_again(server):
    with pytest.raises(NoProcesses, match="has ended"):
        list(server.ask(-1))
    assert numbers(server.ask(1)) == [0]
