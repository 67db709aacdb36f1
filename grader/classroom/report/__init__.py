"""A graded class as one page: what came out, what most got wrong, and what to talk about."""
