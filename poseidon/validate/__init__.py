"""Predictions beside what others measured or printed: each comparison is a function that returns a `Comparison`."""
