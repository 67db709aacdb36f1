"""The exercises of `placement`; a file is a stretch of the lesson."""
