"""A transformer trained on eight devices so that nobody can tell it was not one.

Its files, in the order of the text: `model`, `text`, `sharded`.
"""
