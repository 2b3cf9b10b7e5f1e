"""How large a document may be; far above any real one, far below what takes long to check."""

MAX_BYTES = 16_000_000
"""Largest accepted document."""

MAX_DEPTH = 100
"""Deepest accepted nesting of lists and mappings."""

MAX_VALUES = 500_000
"""Most values of a document, counting those that YAML aliases repeat."""

MAX_ACCELERATORS = 1_000
"""Most accelerator types of a cluster."""

MAX_MISTAKES = 50
"""Mistakes of one document that are listed; a file with more is likely not what it was taken for."""
