"""Several processes that are one program, and what starts them.

Its files, in the order of the text: `processes`, `files`, `arrays`, `claims`.
"""
