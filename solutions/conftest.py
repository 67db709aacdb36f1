"""Notebooks are compared with outputs that were stored under this seed."""

import os

from grader.arrays.fresh import SEED

os.environ[SEED] = "0"
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_backend_optimization_level=0"  # each runs once
