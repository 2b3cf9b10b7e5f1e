"""Calibration: a few efficiency parameters of an accelerator, fitted to measured iteration times or matrix products."""
