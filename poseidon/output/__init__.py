"""What people and other programs see: plan files, tables, progress."""
