"""Products that run while their operands travel.

Its files, in the order of the text: `questions`, `rings`.
"""
