"""Poseidon's search on a Ray cluster: connecting, sharing incumbents, spreading outer choices and experiments; no algorithm in here."""
