"""Measured profiles: real layers, timed on this machine's devices (docs/measure.md).

Nothing here is loaded by `poseidon.profile`; modules that name torch are loaded by `poseidon profile` alone.
"""
