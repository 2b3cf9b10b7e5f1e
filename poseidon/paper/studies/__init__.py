"""What is measured: one study a file."""
