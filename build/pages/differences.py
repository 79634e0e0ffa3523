#!/usr/bin/env python3
"""Lists where ratios of technologies go another way than in the papers or are five times off, with an explanation or called unexplained.

Usage: differences.py FOLDER PAGE.md    FOLDER/PAPER/figures.csv as ./parley reproduce --record writes it
Explanations stand in docs/results/explanations.csv: paper, part, metric, one, other, message, load, words. An empty
field stands for any, and the first line that fits is taken.
"""
import csv
import math
import sys
from collections import defaultdict
from itertools import combinations
from pathlib import Path

import runs

EXPLANATIONS = Path(__file__).resolve().parents[2] / "docs/results/explanations.csv"
TIMES = 5
# A ratio this close to 1 has no direction: the tie band of docs/measuring.md.
TIE = math.log(1.05)


def rows(file):
    with open(file, newline="") as text:
        return list(csv.DictReader(text))


def value(text):
    try:
        found = float(text.replace(" ", "").replace("NaN", ""))
        return found if found > 0 else None
    except ValueError:
        return None


def decides(row):
    return row["validity"] == "valid" or row["validity"].startswith(("indicative", "cold start"))


def differing(figures):
    """(times off, turned, metric, one, other, message, load, part, condition, theirs, ours, place) of pairs under one condition."""
    conditions = defaultdict(list)
    for row in figures:
        if value(row["theirs"]) and value(row["ours"]) and decides(row) and row["technology"] and "/" not in row["technology"]:
            conditions[tuple(row[k] for k in ("metric", "topology", "message", "paper_load", "our_load", "subject", "part"))].append(row)
    for (metric, topology, message, load, our_load, subject, part), same in conditions.items():
        for one, other in combinations(sorted(same, key=lambda r: r["technology"]), 2):
            if one["technology"] == other["technology"]:
                continue
            theirs, ours = (value(one[k]) / value(other[k]) for k in ("theirs", "ours"))
            apart = math.exp(abs(math.log(ours / theirs)))
            turned = math.log(theirs) * math.log(ours) < 0 and min(abs(math.log(theirs)), abs(math.log(ours))) > TIE
            if turned or apart > TIMES:
                condition = " ".join(filter(None, (topology, message, our_load or load, subject)))
                place = "; ".join(dict.fromkeys((one["place"], other["place"])))
                yield apart, turned, metric, one["technology"], other["technology"], message, load, part, condition, theirs, ours, place


def span(values):
    ordered = sorted(values)
    ends = [f"{v:.3g}" for v in (ordered[0], ordered[-1])]
    return " to ".join(dict.fromkeys(ends))


def explained(paper, part, metric, one, other, message, load):
    for row in rows(EXPLANATIONS):
        wanted = dict(paper=paper, part=part, metric=metric, one=one, other=other, message=message, load=load)
        if all(not row[key] or row[key] == known for key, known in wanted.items()):
            return row["words"]
    return "unexplained"


def main():
    if len(sys.argv) != 3:
        runs.fail("usage: differences.py FOLDER PAGE.md")
    files = sorted(Path(sys.argv[1]).glob("*/figures.csv"))
    if not files:
        runs.fail(f"{sys.argv[1]} (expected: a folder with PAPER/figures.csv in it)")
    lines = ["# Where our ratios differ from the papers'", "",
             "Two technologies under one condition, of which both have figures that decide. Listed are ratios that are more than five times the paper's or",
             "less than a fifth of it, and those that go the other way (beyond 5 % on both sides). Made by `build/pages/differences.py`;",
             "explanations stand in [explanations.csv](explanations.csv)."]
    for file in files:
        paper = file.parent.name
        groups = defaultdict(list)
        for one in differing(rows(file)):
            _, _, metric, first, second, message, load, part, *_ = one
            groups[metric, first, second, part, explained(paper, part, metric, first, second, message, load)].append(one)
        ratios, open_ones = (sum(len(g) for key, g in groups.items() if "unexplained" in key or not only) for only in (False, True))
        lines += ["", f"## {paper}", "", f"{ratios} ratios, {open_ones} unexplained."]
        if groups:
            lines += ["", "| figure | ratio of | part | conditions | turned | theirs | ours | most off | why |",
                      "| --- | --- | --- | ---: | ---: | --- | --- | --- | --- |"]
        for (metric, first, second, part, why), group in sorted(groups.items(), key=lambda item: -max(item[1])[0]):
            worst = max(group)
            lines.append(f"| {metric} | {first} / {second} | {part} | {len(group)} | {sum(g[1] for g in group)} | {span(g[9] for g in group)} |"
                         f" {span(g[10] for g in group)} | × {worst[0]:.3g}: {worst[8]} ({worst[11]}) | {why} |")
    runs.write(sys.argv[2], lines)


if __name__ == "__main__":
    main()
