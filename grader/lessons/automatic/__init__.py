"""What the compiler makes of shardings, and how it is steered.

Its files, in the order of the text: `predictions`, `steering`.
"""
