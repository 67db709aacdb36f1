"""The exercises of `rings`; a file is a stretch of the lesson."""
