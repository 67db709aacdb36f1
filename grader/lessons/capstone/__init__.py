"""A transformer trained on eight devices so that nobody can tell it was not one.

Its files, in the order of the text: `layouts`, `passes`, `slopes`, `steps`, `curves`, `lives`, `four`, `plans`,
`broken`, `drawn`, `model`, `pods`, `sharded`.
"""
