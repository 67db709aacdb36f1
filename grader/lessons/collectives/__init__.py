"""What each collective does, sends, and is in the backward pass.

Its files, in the order of the text: `in_numpy`, `matrices`, `questions`, `one_number`.
"""
