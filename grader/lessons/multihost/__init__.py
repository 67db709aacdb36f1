"""The exercises of `multihost`; a file is a stretch of the lesson."""
