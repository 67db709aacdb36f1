"""Training with the batch cut, equal to a single device's run.

Its files, in the order of the text: `questions`, `steps`, `state`, `seven_runs`.
"""
