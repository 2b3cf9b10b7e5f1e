"""Policies side by side on one experiment."""
