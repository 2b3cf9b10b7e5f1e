"""Colours that the colour-blind can tell apart (Okabe and Ito, "Color Universal Design", 2008), and line styles."""

from __future__ import annotations

BLACK = "#000000"
ORANGE = "#E69F00"
SKY_BLUE = "#56B4E9"
GREEN = "#009E73"
BLUE = "#0072B2"
VERMILION = "#D55E00"
PURPLE = "#CC79A7"
GREY = "#999999"
COLOURS = (BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY_BLUE, BLACK)
"""In the order in which they are handed out."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
"""One for each colour, so that a plot can also be read in grey."""
