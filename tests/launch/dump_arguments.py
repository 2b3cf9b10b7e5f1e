"""A training script that only writes down how it was called, then does what it is told."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path


def main() -> None:
    """One file for each rank; with --wait it sleeps until it is told to stop."""
    folder, rank = Path(os.environ["DUMP"]), os.environ["RANK"]

    def stop(number: int, frame: object) -> None:
        (folder / f"signal-{rank}").write_text(signal.Signals(number).name)
        sys.exit(0)

    signal.signal(signal.SIGTERM, stop)
    call = {"argv": sys.argv[1:], "world_size": int(os.environ["WORLD_SIZE"]), "node": os.environ.get("NODE", "")}
    temporary = folder / f".rank-{rank}"
    temporary.write_text(json.dumps(call))
    temporary.rename(folder / f"rank-{rank}.json")
    if "--wait" in sys.argv:
        time.sleep(120)
    sys.exit(int(os.environ.get("STATUS", "0")))


if __name__ == "__main__":
    main()
