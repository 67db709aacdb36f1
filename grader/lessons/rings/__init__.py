"""Collectives built from sends between neighbors, and devices that wait forever.

Its files, in the order of the text: `rings`, `waiting`.
"""
