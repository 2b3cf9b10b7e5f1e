"""The paper's figures and tables: one a file, each made of the rows of studies."""
