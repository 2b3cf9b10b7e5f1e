"""The launcher: takes a training command, plans for it, and gives it back with the plan applied."""
