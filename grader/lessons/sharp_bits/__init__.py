"""Where programs on many devices go wrong in silence.

Its files, in the order of the text: `dice`, `promises`, `numbers`.
"""
