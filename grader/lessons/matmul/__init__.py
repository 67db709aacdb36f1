"""The exercises of `matmul`; a file is a stretch of the lesson."""
