"""Gradients through collectives: who adds up, and where.

Its files, in the order of the text: `transposes`, `means`, `rules`.
"""
