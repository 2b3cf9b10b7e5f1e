"""What the processes of a real pipeline run; the only modules of this room that load torch."""
