"""Which devices there are, what they hold, and how a mesh arranges them.

Its files, in the order of the text: `devices`, `meshes`.
"""
