"""The colours of blocks, by themselves: a page needs them where nothing is drawn, and Matplotlib takes its time."""

# Okabe and Ito's hues, moved until any two are CIEDE2000 ≥ 12 apart to everyone (`tests/draw/test_colour_vision.py`
# computes it for each kind of colour-blindness), and dark text can be read on each.
COLOURS = ("#96d9ff", "#ffd059", "#aac9b0", "#e79872", "#c2a7bd", "#faf2bc", "#7897d4", "#e1e6ea")
