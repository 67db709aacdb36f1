"""What communication, memory and waiting cost.

Its files, in the order of the text: `estimates`, `wires`, `memory`. What they say is
measured in `layers_measured` and `rings_played`.
"""
