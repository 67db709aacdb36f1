"""How an array is sharded: specs, which device holds which block, and what JAX refuses.

Its files, in the order of the text: `functions`, `questions`.
"""
