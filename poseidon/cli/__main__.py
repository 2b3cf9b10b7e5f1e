"""``python -m poseidon.cli``: the same as ``poseidon``."""

from poseidon.cli.entry import main

main()
