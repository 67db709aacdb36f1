"""A hand-in, a class, a cluster: graded, recorded, shown."""
