"""The exercises of `data_parallel`; a file is a stretch of the lesson."""
