"""How an array is cut: specs, who holds which block, and what JAX refuses.

Its files, in the order of the text: `functions`, `questions`.
"""
