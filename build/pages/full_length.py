#!/usr/bin/env python3
"""Holds a cell in full length against the same at a scale, from the raw rows of both stores, and writes a page. Needs DuckDB's package.

Usage: full_length.py SCALED FULL PAGE.md
Exit code 1 where a figure is not shown to be equivalent.
"""
import math
import statistics
import sys
from pathlib import Path

import runs

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs/results/audit"))
import audit  # noqa: E402  reads stores and decodes histograms, with nothing of Parley between

# What the claims of the two papers rest on, and the throughput, which an open load must keep.
METRICS = ["latency_median", "latency_mean", "hop_mean", "cpu_per_request", "throughput"]
LEVEL = 0.05
BORDER = math.log1p(audit.TIE_BAND)


def quantile(freedom):
    """Student's t that is exceeded with a chance of 5 %: by halving, since the tail falls."""
    low, high = 0.0, 1000.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if audit.upper_tail(middle, freedom) > LEVEL else (low, middle)
    return low


def held_against(full, scaled):
    """(ratio, low, high of its 90 % interval) on logarithms; equivalent where it lies within the tie band.

    The test is Welch's where both have three restarts or more. An hour is dear: where fewer ran in full length,
    restarts are taken to vary as much there as at the scale (Student's test, pooled). A longer window varies less, so
    that the interval is too wide rather than too narrow.
    """
    a, b = [math.log(v) for v in full], [math.log(v) for v in scaled]
    apart = statistics.fmean(a) - statistics.fmean(b)
    if len(a) < 3:
        freedom = len(b) - 1
        error = statistics.stdev(b) * math.sqrt(1 / len(a) + 1 / len(b))
    else:
        va, vb = statistics.variance(a) / len(a), statistics.variance(b) / len(b)
        error = math.sqrt(va + vb)
        freedom = (va + vb) ** 2 / (va ** 2 / (len(a) - 1) + vb ** 2 / (len(b) - 1)) if error else 1
    reach = quantile(freedom) * error if error else 0
    return math.exp(apart), math.exp(apart - reach), math.exp(apart + reach)


def verdict(low, high):
    if abs(math.log(low)) < BORDER and abs(math.log(high)) < BORDER:
        return "equivalent"
    return "different: the scale is wrong" if low > 1 + audit.TIE_BAND or high < 1 / (1 + audit.TIE_BAND) else "not shown"


def main():
    if len(sys.argv) != 4:
        runs.fail("usage: full_length.py SCALED FULL PAGE.md")
    scaled, full = (audit.Store(Path(folder) / "results.duckdb") for folder in sys.argv[1:3])
    cells = [{(t["technology"], t["topology"], t["message"], t["load"]) for t in store.trials} for store in (scaled, full)]
    if cells[0] != cells[1]:
        runs.fail(f"{sys.argv[1]} and {sys.argv[2]}: not the same cells (expected: the same technology, topology, message and load)")
    name = Path(sys.argv[2]).name
    lines = [f"# In full length and at the standard scale: {name}", "", "In full length:", "",
             *runs.head(runs.read(sys.argv[2]), f"build/full-length {name}"), "", "At the scale:", "",
             *runs.head(runs.read(sys.argv[1]), f"build/full-length {name}"), "",
             "A scale may stand for the full length where their ratio lies within 5 % with all of its 90 % interval (two one-sided tests on logarithms, Welch's,",
             "or Student's with the scale's variance of restarts where under three restarts ran in full length). Figures are medians over restarts that",
             "count, from the raw rows.", "",
             "| cell | figure | full length | restarts | at the scale | restarts | ratio (90 %) | |", "| --- | --- | ---: | ---: | ---: | ---: | --- | --- |"]
    fails = 0
    for cell in sorted(cells[0]):
        for metric in METRICS:
            sides = [list(audit.points(store, cell, metric).values()) if any(t["valid"] for t in store.counted(*cell)) else []
                     for store in (full, scaled)]
            if not sides[0] or len(sides[1]) < 3 or min(map(min, sides)) <= 0:
                shown, said = "none", "not shown: none counts in full length, or under three at the scale"
            else:
                ratio, low, high = held_against(*sides)
                shown, said = f"{ratio:.3f} ({low:.3f} to {high:.3f})", verdict(low, high)
            fails += said != "equivalent"
            middles = [f"{runs.number(statistics.median(side))} | {len(side)}" if side else "– | 0" for side in sides]
            lines.append(f"| {' '.join(cell)} | {metric} | {middles[0]} | {middles[1]} | {shown} | {said} |")
    lines += ["", f"Not equivalent, or not shown to be: {fails} figures." if fails else "All are equivalent."]
    runs.write(sys.argv[3], lines)
    print(lines[-1])
    return 1 if fails else 0


if __name__ == "__main__":
    sys.exit(main())
