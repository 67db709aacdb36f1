"""How well one colour is seen on another, by WCAG."""

import numpy as np
from matplotlib.colors import to_rgb


def contrast(one, other) -> float:
    """From 1, not at all, to 21; text can be read from 4.5 on."""
    dark, light = sorted(map(_luminance, (one, other)))
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour) -> float:
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))
