"""Where arrays live, which can be used together, and how they move.

Its files, in the order of the text: `whereabouts`, `moves`.
"""
