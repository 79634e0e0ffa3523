#!/usr/bin/env python3
"""Writes README's table of figures from a run's folder, between its two marks. Usage: readme_table.py FOLDER README.md"""
import sys
from pathlib import Path

import runs

BEGIN, END = "<!-- figures: build/readme-table -->", "<!-- end of figures -->"
# (heading, load of so many clients, metric); bytes are those of a request and its reply together
COLUMNS = [("p50 ms, 1 client", 1, "latency_median"), ("p99 ms, 1 client", 1, "latency_p99"), ("requests/s, 16 clients", 16, "throughput"),
           ("processor ms a request, 16 clients", 16, "cpu_per_request"), ("memory MB a service", 16, "memory_after_load")]


def bytes_of(found, technology, message):
    """What a request and its reply put on the connection. It belongs to the message, and is kept with one of its loads."""
    def row(metric):
        return next((r for (t, m, _, key), r in found.items() if (t, m, key) == (technology, message, metric)), None)
    out, back = row("wire_out"), row("wire_back")
    return runs.number(out["value"] + back["value"]) if out and back else "–"


def table(summary, message):
    found = runs.figures(summary)
    first = f"closed:{COLUMNS[0][1]}"
    rows = {t: found.get((t, message, first, COLUMNS[0][2])) for t in {r["technology"] for r in summary["summary"]}}
    # sorted by the first figure; what has none that counts stands below, by name
    order = sorted(rows, key=lambda t: (not runs.counts(rows[t]), rows[t]["value"] if runs.counts(rows[t]) else 0, t))
    lines = ["| | " + " | ".join(heading for heading, _, _ in COLUMNS) + " | bytes |", "| --- |" + " ---: |" * (len(COLUMNS) + 1)]
    for technology in order:
        figures = [runs.cell(found.get((technology, message, f"closed:{clients}", metric))) for _, clients, metric in COLUMNS]
        lines.append(f"| {technology} | " + " | ".join(figures) + f" | {bytes_of(found, technology, message)} |")
    return lines


def main():
    if len(sys.argv) != 3:
        runs.fail("usage: readme_table.py FOLDER README.md")
    summary = runs.read(sys.argv[1])
    readme = Path(sys.argv[2])
    text = readme.read_text() if readme.exists() else f"{BEGIN}\n{END}\n"
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        runs.fail(f"{readme} (expected: the lines {BEGIN} and {END}, each once)")
    messages = sorted({r["message"] for r in summary["summary"]})
    topology = sorted({r["topology"] for r in summary["summary"]})
    if len(messages) != 1 or len(topology) != 1:
        runs.fail(f"{sys.argv[1]}: {len(messages)} messages, {len(topology)} topologies (expected: one of each)")
    found = runs.figures(summary)
    if not any(runs.counts(found.get((r["technology"], messages[0], f"closed:{COLUMNS[0][1]}", COLUMNS[0][2]))) for r in summary["summary"]):
        runs.fail(f"{sys.argv[1]}: no technology was warm (expected: figures that count; {readme} stays as it is)")
    run = summary["run"]
    restarts = max(r["tried"] for r in summary["summary"] if "tried" in r)
    lines = [f"`{messages[0]}` over `{topology[0]}`, warm, {restarts} restarts, medians with 95 % intervals, sorted by the first column:", "",
             *table(summary, messages[0]), "",
             f"Made by `build/readme-table` on {run['startedAt'][:10]}: {run['machine'].get('cpu', 'unknown')}, {run['machine'].get('cores', '?')} cores,"
             f" {run['jdk']}, commit {run['commit']}. An ending `-tuned` is the",
             "same technology tuned by its own documentation ([variants](docs/variants.md)); *cold*, *void* and *unknown* have no figure"
             " ([why](docs/measuring.md#cold)). On one machine",
             "the generator and all services share the cores."]
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    readme.write_text(before + BEGIN + "\n" + "\n".join(lines) + "\n" + END + after)
    print(f"written: {readme}")


if __name__ == "__main__":
    main()
