"""Many experiments from one file: a grid of changes, one Parquet row a run, resumable; then a table and a plot."""
