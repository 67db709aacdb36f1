"""Layouts in the types: Explicit meshes, and what has to be said on them.

Its files, in the order of the text: `questions`, `programs`.
"""
