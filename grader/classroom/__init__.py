"""The instructor's side: building lessons, running hand-ins, grading a class. Needs nbgrader."""
