"""Programs compiled for chips that nobody here has: what a pod would hold, send and compute, by its own compiler."""
