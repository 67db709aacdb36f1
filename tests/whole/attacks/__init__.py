"""Hostile hand-ins as data: what a clever student would try, and how one sees that it worked.

Each attack is a code cell in a hand-in of the mini lesson, or a whole folder that is handed in. `won` looks at what
came of it, a `Result`, and says what the attacker got ("" for nothing). `stock` says whether nbgrader's own pipeline
falls to it, and why.
"""

from whole.attacks import crash, fake, files, fill, poison, steal

ATTACKS = (*fake.ATTACKS, *steal.ATTACKS, *poison.ATTACKS, *fill.ATTACKS, *crash.ATTACKS, *files.ATTACKS)
BY_NAME = {attack.name: attack for attack in ATTACKS}
