"""The Poseidon paper's evaluation (arXiv 2609.06086): its figures and tables made anew, beside what it reports.

A *study* measures and leaves rows (Parquet); an *exhibit*, a figure or table of the paper, is made of the rows of
studies alone: its plot, its table, and one line on what the paper reports and what is found here.
"""
