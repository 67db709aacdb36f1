"""How different two colours look, to who sees all of them and to who does not.

The distance is CIEDE2000 (Sharma, Wu and Dalal 2005, Color Research & Application 30, with their test data in
`tests/draw/test_colour_vision.py`); who sees no red, green or blue is simulated as Machado, Oliveira and Fernandes
2009 (IEEE Transactions on Visualization and Computer Graphics 15) do for a severity of 1.
"""

import math

import numpy as np
from matplotlib.colors import to_rgb

# From linear RGB to linear RGB.
VISIONS = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.119192, 0.9503041]]
)
WHITE = np.array([0.95047, 1.0, 1.08883])  # D65


def difference(one, other, vision: str = "normal") -> float:
    """CIEDE2000 between two colours of sRGB as somebody sees them; about 1 is the least that anybody sees."""
    return ciede2000(lab(one, vision), lab(other, vision))


def lab(colour, vision: str = "normal") -> tuple[float, float, float]:
    """A colour of sRGB in CIELAB, as somebody sees it."""
    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    parts = TO_XYZ @ np.clip(VISIONS[vision] @ linear, 0, 1) / WHITE
    x, y, z = np.where(parts > (6 / 29) ** 3, np.cbrt(parts), parts / (3 * (6 / 29) ** 2) + 4 / 29)
    return float(116 * y - 16), float(500 * (x - y)), float(200 * (y - z))


def ciede2000(one, other) -> float:
    """The distance of two colours of CIELAB, with the three weights 1."""
    (light_1, a_1, b_1), (light_2, a_2, b_2) = one, other
    mean_7 = ((math.hypot(a_1, b_1) + math.hypot(a_2, b_2)) / 2) ** 7
    stretch = 1 + 0.5 * (1 - math.sqrt(mean_7 / (mean_7 + 25**7)))
    chroma_1, chroma_2 = math.hypot(stretch * a_1, b_1), math.hypot(stretch * a_2, b_2)
    hue_1, hue_2 = (math.degrees(math.atan2(b, stretch * a)) % 360 for a, b in ((a_1, b_1), (a_2, b_2)))
    turn = (hue_2 - hue_1 + 180) % 360 - 180 if chroma_1 * chroma_2 else 0.0
    if turn == -180:
        turn = 180.0
    hue = (hue_1 + turn / 2) % 360 if chroma_1 * chroma_2 else hue_1 + hue_2
    light, chroma = (light_1 + light_2) / 2, (chroma_1 + chroma_2) / 2
    weight = (
        1
        - 0.17 * _cos(hue - 30)
        + 0.24 * _cos(2 * hue)
        + 0.32 * _cos(3 * hue + 6)
        - 0.20 * _cos(4 * hue - 63)
    )  # fmt: skip
    d_light = (light_2 - light_1) / (1 + 0.015 * (light - 50) ** 2 / math.sqrt(20 + (light - 50) ** 2))
    d_chroma = (chroma_2 - chroma_1) / (1 + 0.045 * chroma)
    d_hue = 2 * math.sqrt(chroma_1 * chroma_2) * math.sin(math.radians(turn / 2)) / (1 + 0.015 * chroma * weight)
    rotation = (
        2
        * math.sqrt(chroma**7 / (chroma**7 + 25**7))
        * math.sin(math.radians(60 * math.exp(-(((hue - 275) / 25) ** 2))))
    )
    return math.sqrt(d_light**2 + d_chroma**2 + d_hue**2 - rotation * d_chroma * d_hue)


def _cos(degrees: float) -> float:
    return math.cos(math.radians(degrees))
