"""What a pod would do with a program, by its own compiler.

Its files, in the order of the text: `memory`, `transfers`, `places`, `money`.
"""
