"""The search: bounds with their proofs, policies, and the exhaustive search in plain Python that judges them."""
