"""Pipelines: who waits for whom, and what it costs to keep everybody busy.

Its files, in the order of the text: `questions`, `programs`, `orders`, `rounds`, `copies`, `stages`.
"""
