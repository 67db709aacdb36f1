"""The exercises of `sharp_bits`; a file is a stretch of the lesson."""
