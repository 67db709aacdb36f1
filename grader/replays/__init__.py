"""A program with shard_map, line by line, on all its devices at once: interpreted to plain facts, then drawn."""
