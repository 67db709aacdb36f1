"""The exercises of `gradients`; a file is a stretch of the lesson."""
