"""Attention over a text of which every device holds a part.

Its files, in the order of the text: `merging`, `gathering`, `rings`, `balance`, `halves`, `heads`,
`costs`, `backwards`, `attention`.
"""
