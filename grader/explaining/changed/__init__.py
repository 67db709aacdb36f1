"""The reference with one thing changed: what else would give the answer."""
