"""The four sharded matmuls, and what they cost.

Its files, in the order of the text: `questions`, `cases`.
"""
