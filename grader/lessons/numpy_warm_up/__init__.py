"""NumPy, which comes before the first lesson: no text and no exercises, only what the first lessons ask of it."""
