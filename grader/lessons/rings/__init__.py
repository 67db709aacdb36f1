"""Collectives built from sends between neighbours, and devices that wait for ever.

Its files, in the order of the text: `waiting`, `rings`.
"""
