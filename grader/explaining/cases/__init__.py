"""What the cases with a wrong result have in common."""
