"""Training with the weights in shares: each layer is gathered for its use, and forgotten.

Its files, in the order of the text: `state`, `layers`, `slices`, `steps`, `network`.
"""
