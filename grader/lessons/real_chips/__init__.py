"""What a pod would do with a program, by its own compiler.

Its files, in the order of the text: `asking`, `memory`, `choices`, `transfers`, `bets`, `places`, `money`.
"""
