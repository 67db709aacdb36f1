"""Found against expected: relations between two values, whether they are on devices or plain."""
