"""The exercises of `collectives`; a file is a stretch of the lesson."""
