"""What the compiler makes of layouts, and how it is steered.

Its files, in the order of the text: `predictions`, `steering`.
"""
