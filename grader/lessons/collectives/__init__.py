"""What each collective does, sends, and is in the backward pass.

Its files, in the order of the text: `questions`, `in_numpy`, `matrices`, `one_number`.
"""
