"""What runs inside the laboratory: its first process, and the one that grades."""

import sys
from pathlib import Path

from whole.attacks.grading import grade
from whole.attacks.warden import laboratory

if sys.argv[1] == "lab":
    laboratory(sys.argv[2], Path(sys.argv[3]))
else:
    grade(*sys.argv[2:])
