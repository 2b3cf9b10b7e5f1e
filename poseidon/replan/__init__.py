"""A new plan after nodes were lost or added, and what has to move for it."""
