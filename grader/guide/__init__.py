"""A student's way through the course: what is done, what comes next, a hint, a fresh starter, a receipt."""
