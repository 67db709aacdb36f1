"""A compiled program's text, HLO, read into a report: collectives, bytes, FLOPs, and who asked for each."""
