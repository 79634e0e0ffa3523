#!/usr/bin/env python3
"""Holds quick runs against a long one, from the raw rows of their stores, and writes a page. Needs DuckDB's package.

Usage: proof_of_quick.py PAGE.md LONG SECONDS:QUICK…    (each quick run with the seconds that it took)
Exit code 1 where a condition fails.
"""
import statistics
import sys
from pathlib import Path

import runs

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs/results/audit"))
import audit  # noqa: E402  reads stores and decodes histograms, with nothing of Parley between

MAX_SHARE = audit.MAX_COMPILING
MAX_APART = 0.25
MAX_SECONDS = 300
BASE = "rpcx"
METRICS = {"latency_median": "p50", "cpu_per_request": "CPU per request"}


def windows(store):
    """(share of compilers in %, words, how it counts) of each trial that was planned."""
    found = []
    for trial in store.trials:
        shares = [v for subject, v in store.measured[trial["trial_id"], "compiling_share"] if subject == "system"]
        words = f"{trial['technology']} {trial['message']} {trial['load']}, restart {trial['restart']}"
        found.append((max(shares) if shares else None, words, trial["counts_as"] or trial["state"].lower()))
    return found


def points(store, cell, metric):
    """{restart: value} of one cell, of the restarts in which its trial counts."""
    counts = {t["restart"] for t in store.cell(*cell) if t["counts_as"] == "valid"}
    return {restart: value for restart, value in audit.points(store, cell, metric).items() if restart in counts}


def ratios(store):
    """{(message, load, metric, technology): (median over restarts of its ratio to RPCX within the restart, how many restarts)}."""
    found = {}
    for technology, topology, message, load in {(t["technology"], t["topology"], t["message"], t["load"]) for t in store.trials}:
        for metric in METRICS:
            own = points(store, (technology, topology, message, load), metric)
            base = points(store, (BASE, topology, message, load), metric)
            both = [own[r] / base[r] for r in own.keys() & base.keys() if base[r] > 0]
            if technology != BASE and both:
                found[message, load, metric, technology] = statistics.median(both), len(both)
    return found


def mark(restarts):
    return " †" if restarts == 1 else ""


def main():
    if len(sys.argv) < 4 or not all(":" in quick for quick in sys.argv[3:]):
        runs.fail("usage: proof_of_quick.py PAGE.md LONG SECONDS:QUICK…")
    page, folder, *quick = sys.argv[1:]
    took = [int(q.split(":", 1)[0]) for q in quick]
    long_run = audit.Store(Path(folder) / "results.duckdb")
    quick_runs = [audit.Store(Path(q.split(":", 1)[1]) / "results.duckdb") for q in quick]
    fails, cold = [], []
    lines = ["# Proof of the quick comparison", "", *runs.head(runs.read(folder), "build/proof-of-quick"), "",
             "`./parley compare --quick` on fresh clones, and the same cells after ten minutes of rehearsal in each boot, of which the lines above are. *Took*",
             "is the wall time of the command, without the clone and its build. All else below is derived from the raw rows of the stores, by the",
             "[audit](audit/README.md)'s reading of them. What has to hold: compilers take at most the bound in every window, each ratio lies within its bound of",
             f"the long run's, and a quick run takes {MAX_SECONDS} s at the most.", "",
             f"| run | commit | begun | took | windows | over {MAX_SHARE} % compiling | highest share | void, cold, unknown or not ended |",
             "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |"]
    folders = [*(q.split(":", 1)[1] for q in quick), folder]
    names = [*(f"clone {i + 1}" for i in range(len(quick))), "ten minutes"]
    for name, where, seconds, store in zip(names, folders, [*took, None], [*quick_runs, long_run]):
        found = windows(store)
        shares = [share for share, _, _ in found if share is not None]
        over = sum(share is None or share > MAX_SHARE for share, _, _ in found)
        other = [one for one in found if one[0] is None or one[0] > MAX_SHARE or one[2] not in ("valid", "cold")]
        cold += [f"{name}: {words}" for share, words, kind in found if kind == "cold" and share is not None and share <= MAX_SHARE]
        run = runs.read(where)["run"]
        lines.append(f"| {name} | {run['commit']} | {run['startedAt'][:16]}Z | {f'{seconds} s' if seconds else ''} | {len(found)} | {over} |"
                     f" {max(shares, default=0):.1f} % | {sum(kind != 'valid' for _, _, kind in found)} |")
        fails += [f"{name}: {words}: {kind}, compilers took {'an unknown share' if share is None else f'{share:.1f} %'}"
                  for share, words, kind in other]
        if seconds and seconds > MAX_SECONDS:
            fails.append(f"{name}: took {seconds} s (expected: {MAX_SECONDS} or less)")
    if cold:
        lines += ["", "Cold although the services' compilers took little, because latency fell from the window's first half to its second, or by the generator's",
                  "compilers: they have no part in the ratios, which rest on the other restart.", "", *(f"- {what}" for what in cold)]
    lines += ["", f"Ratios to {BASE.upper()}: medians over restarts of the ratio within a restart. Quick has to lie within {MAX_APART:.0%} of the long run. † rests on",
              "one restart of two: the comparison itself prints no such ratio.", "",
              "| message | load | figure | technology | long | " + " | ".join(f"clone {i + 1}" for i in range(len(quick))) + " |",
              "| --- | --- | --- | --- | ---: |" + " ---: |" * len(quick)]
    expected, found = ratios(long_run), [ratios(store) for store in quick_runs]
    for key in sorted(expected.keys() | {k for of_one in found for k in of_one}):
        message, load, metric, technology = key
        cells = []
        for i, of_one in enumerate(found):
            if key not in of_one or key not in expected:
                cells.append("**none**")
                fails.append(f"clone {i + 1}: {message} {load} {METRICS[metric]} of {technology}: no ratio in one of the two runs")
                continue
            (value, restarts), (truth, _) = of_one[key], expected[key]
            apart = value / truth - 1
            cells.append(f"{value:.2f} ({apart:+.0%}){mark(restarts)}")
            if abs(apart) > MAX_APART:
                cells[-1] = f"**{cells[-1]}**"
                fails.append(f"clone {i + 1}: {message} {load} {METRICS[metric]} of {technology}: {value:.2f} against {truth:.2f}, {apart:+.0%}")
        own = f"{expected[key][0]:.2f}{mark(expected[key][1])}" if key in expected else "none"
        lines.append(f"| {message} | {load} | {METRICS[metric]} | {technology} | {own} | " + " | ".join(cells) + " |")
    lines += ["", f"It does not hold, in {len(fails)} places:" if fails else "It holds: compilers took at most the bound in every window, and every ratio is within its own.",
              *([""] + [f"- {what}" for what in fails] if fails else [])]
    runs.write(page, lines)
    print("\n".join(["it does not hold:", *fails]) if fails else "it holds")
    return 1 if fails else 0


if __name__ == "__main__":
    sys.exit(main())
