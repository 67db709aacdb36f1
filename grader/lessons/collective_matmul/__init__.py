"""The exercises of `collective_matmul`; a file is a stretch of the lesson."""
