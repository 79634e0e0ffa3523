#!/usr/bin/env python3
"""Writes the page of sizes at which the order of technologies changes, from a run's folder. Usage: size_crossover.py FOLDER PAGE.md"""
import math
import re
import sys

import runs

METRICS = {"latency_median": "Median latency", "cpu_per_request": "Processor time of all services for one request"}


def sized(message):
    found = re.fullmatch(r"types:(\d+)", message)
    return int(found[1]) if found else None


def pairs(summary, load, metric):
    """{(one, other): [(size, comparison)]} of comparisons that have a ratio, by size."""
    found = {}
    for row in summary["comparisons"]:
        if row["metric"] == metric and row["load"] == load and "ratio" in row and sized(row["message"]) is not None:
            found.setdefault((row["technology"], row["against"]), []).append((sized(row["message"]), row))
    return {pair: sorted(rows, key=lambda r: r[0]) for pair, rows in found.items()}


def zeros(points):
    """Where a line through points (size, ratio) passes a ratio of 1, both on logarithmic scales."""
    found = []
    for (n1, r1), (n2, r2) in zip(points, points[1:]):
        a, b = math.log(r1), math.log(r2)
        if a == 0 or a * b < 0:
            found.append(math.exp(math.log(n1) + (math.log(n2) - math.log(n1)) * a / (a - b)))
    return found


def crossings(rows):
    """[(who is lower at first, size before, size after, estimate, low, high)] between sizes at which a verdict was reached both ways."""
    decided = [i for i, (_, row) in enumerate(rows) if row["verdict"] in ("better", "worse")]
    found = []
    for i, j in zip(decided, decided[1:]):
        rises = rows[i][1]["ratio"] < 1 < rows[j][1]["ratio"]
        if not rises and not rows[i][1]["ratio"] > 1 > rows[j][1]["ratio"]:
            continue
        between = rows[i:j + 1]
        first, last = ("high", "low") if rises else ("low", "high")
        at = {key: zeros([(n, row[key]) for n, row in between]) for key in ("ratio", "low", "high")}
        found.append((rises, rows[i][0], rows[j][0], at["ratio"][0], at[first][0], at[last][-1]))
    return found


def crossing_table(by_pair):
    lines = ["| lower at small sizes | lower at large sizes | changes between | at (95 %) |", "| --- | --- | --- | --- |"]
    changed, same, open_pairs = [], [], []
    for (one, other), rows in sorted(by_pair.items()):
        found = crossings(rows)
        decided = [row for _, row in rows if row["verdict"] in ("better", "worse")]
        for rises, before, after, at, low, high in found:
            small, large = (one, other) if rises else (other, one)
            changed.append((at, f"| {small} | {large} | {before} and {after} | {at:.0f} ({low:.0f} to {high:.0f}) |"))
        if not found:
            (same if len(decided) >= 2 else open_pairs).append(f"{one} – {other}")
    lines += [line for _, line in sorted(changed)] or ["| none | | | |"]
    kept = f"{len(same)} pairs keep their order throughout" + (f"; not decided at two sizes: {', '.join(open_pairs)}." if open_pairs else ".")
    return lines + ["", kept]


def figure_table(summary, load, metric, technologies, sizes):
    found = runs.figures(summary)
    lines = ["| technology | " + " | ".join(map(str, sizes)) + " |", "| --- |" + " ---: |" * len(sizes)]
    for technology in technologies:
        row = [runs.cell(found.get((technology, f"types:{n}", load, metric))) for n in sizes]
        lines.append(f"| {technology} | " + " | ".join(row) + " |")
    return lines


def order_table(summary, load, metric, technologies, sizes):
    """From the lowest to the highest; `<` where the verdict says so, `=` where the two are equivalent, `~` where neither is shown."""
    found = runs.figures(summary)
    verdicts = {}
    for row in summary["comparisons"]:
        if row["metric"] == metric and row["load"] == load:
            verdicts[row["message"], row["technology"], row["against"]] = row["verdict"]
            verdicts[row["message"], row["against"], row["technology"]] = row["verdict"]
    lines = ["| properties | from the lowest to the highest |", "| ---: | --- |"]
    for n in sizes:
        message = f"types:{n}"
        rows = {t: found.get((t, message, load, metric)) for t in technologies}
        order = sorted((t for t in technologies if runs.counts(rows[t])), key=lambda t: rows[t]["value"])
        signs = {"better": "<", "worse": "<", "equivalent": "="}
        words = order[:1]
        for one, other in zip(order, order[1:]):
            words += [signs.get(verdicts.get((message, one, other), ""), "~"), other]
        lines.append(f"| {n} | {' '.join(words) or 'nothing that counts'} |")
    return lines


def main():
    if len(sys.argv) != 3:
        runs.fail("usage: size_crossover.py FOLDER PAGE.md")
    summary = runs.read(sys.argv[1])
    sizes = sorted({n for r in summary["summary"] if (n := sized(r["message"])) is not None})
    loads = sorted({r["load"] for r in summary["summary"] if r["load"].startswith("closed:")})
    technologies = sorted({r["technology"] for r in summary["summary"]})
    if len(sizes) < 2 or not loads:
        runs.fail(f"{sys.argv[1]}: {len(sizes)} sizes of types:N under closed loads (expected: two or more)")
    lines = ["# Sizes at which the order of technologies changes", "", *runs.head(summary, "build/size-crossover"), "",
             "Kazanavičius and Mažeika (2023) leave open from which size on one technology is to be preferred to another. Messages are lists of",
             "records; the size is the number of their properties. Figures are medians over restarts with 95 % intervals; *cold*, *void* and",
             "*unknown* have none ([how it is measured](../measuring.md)). An order changes where verdicts of two sizes are opposite. The size is",
             "where the ratio passes 1 on a straight line between measured sizes, both logarithmic; its interval is where the ends of the ratios'",
             "intervals pass 1. A message with no record in it is `types:1`."]
    for load in loads:
        for metric, title in METRICS.items():
            lines += ["", f"## {title}, {load.replace('closed:', '')} client{'s' if load != 'closed:1' else ''}", "",
                      *crossing_table(pairs(summary, load, metric)), "", *order_table(summary, load, metric, technologies, sizes),
                      "", "In ms, by number of properties:", "", *figure_table(summary, load, metric, technologies, sizes)]
    lines += ["", "`<`: the verdict says so. `=`: equivalent within 5 %. `~`: neither is shown."]
    runs.write(sys.argv[2], lines)


if __name__ == "__main__":
    main()
