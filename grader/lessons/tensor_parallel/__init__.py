"""The exercises of `tensor_parallel`; a file is a stretch of the lesson."""
