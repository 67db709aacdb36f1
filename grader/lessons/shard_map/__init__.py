"""The per-device view: blocks, specs, and types that say what varies.

Its files, in the order of the text: `programs`, `varying`, `views`, `exchange`.
"""
