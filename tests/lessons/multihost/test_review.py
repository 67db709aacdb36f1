"""The questions that later lessons ask about many processes: right, and never the same twice."""

import re

from asking import asked
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

from grader.lessons.multihost import review as questions


def test_a_process_loads_what_its_devices_get():
    for question in asked(questions.rows_of_a_process):
        batch, processes, devices = map(
            int, re.search(r"of (\d+) examples, (\d+) processes of (\d+)", question.ask).groups()
        )
        number = int(re.search(r"process (\d+) loads", question.ask)[1])
        shard = NamedSharding(AbstractMesh((processes * devices,), ("data",)), P("data")).shard_shape((batch,))[0]
        assert question.answer == number * devices * shard
