"""Gradients through collectives: what is summed, and where.

Its files, in the order of the text: `transposes`, `means`, `rules`.
"""
