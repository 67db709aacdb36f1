"""The exercises of `shard_map`; a file is a stretch of the lesson."""
