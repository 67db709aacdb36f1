"""Where arrays live, what may meet, and how they move.

Its files, in the order of the text: `whereabouts`, `moves`.
"""
