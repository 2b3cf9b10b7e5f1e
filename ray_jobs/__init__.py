"""Poseidon's search on a Ray cluster: connecting, sharing incumbents, spreading outer choices; no algorithm in here."""
