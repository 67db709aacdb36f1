"""Which devices there are, and how they stand in a mesh.

Its files, in the order of the text: `devices`, `meshes`.
"""
