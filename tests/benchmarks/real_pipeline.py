"""Real pipelines of four processes beside the simulator's prediction; needs torch, takes a few minutes.

python tests/benchmarks/real_pipeline.py [--iterations 8] [--scale 1] [--runs 1]
"""

import argparse

from poseidon.validate.real_pipeline import real_pipeline


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=8)
    parser.add_argument("--scale", type=float, default=1.0, help="times all durations")
    parser.add_argument("--runs", type=int, default=1, help="of each pipeline; the fastest counts")
    options = parser.parse_args()
    comparison = real_pipeline(iterations=options.iterations, scale=options.scale, runs=options.runs)
    print(f"{'pipeline':34} {'predicted ms':>12} {'fastest ms':>12} {'error':>8}")
    for row in comparison.rows:
        print(f"{row.label:34} {row.predicted:12.1f} {row.observed:12.1f} {row.relative_error:+8.2%}")
    print(comparison.summary)
    for note in comparison.notes:
        print(note)


if __name__ == "__main__":
    main()
