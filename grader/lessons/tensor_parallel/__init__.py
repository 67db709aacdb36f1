"""Training with the weights cut: layers, heads and vocabulary.

Its files, in the order of the text: `numbers`, `layers`, `heads`, `vocabulary`, `block`.
"""
