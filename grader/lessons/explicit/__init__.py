"""Shardings in the types: Explicit meshes, and what you decide on them.

Its files, in the order of the text: `questions`, `programs`.
"""
