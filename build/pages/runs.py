"""What the makers of pages have in common: a run's summary.json, its head, and figures as they are printed."""
import json
import sys
from datetime import datetime, timezone
from pathlib import Path


def fail(what):
    """Ends the program with one line and exit code 1."""
    print(f"{Path(sys.argv[0]).name}: {what}", file=sys.stderr)
    sys.exit(1)


def read(folder):
    """The summary of a run's folder."""
    try:
        summary = json.loads((Path(folder) / "summary.json").read_text())
    except (OSError, ValueError) as wrong:
        fail(f"{folder}: {wrong} (expected: the folder of a run, with its summary.json)")
    if summary.get("format") != 1:
        fail(f"{folder}: format {summary.get('format')} (expected: a summary of format 1; ./parley report {folder} writes it anew)")
    return summary


def head(summary, command):
    """Where figures come from, a line each."""
    run = summary["run"]
    machine = run["machine"]
    trials = summary["trials"]
    ended = {t["id"] for t in trials if t["state"] == "finished"}
    bad = {t["id"] for t in trials if t["voidReasons"]}
    cold = {t["id"] for t in trials if t["coldReasons"] or t["unknownReasons"]} - bad
    return [
        f"- command: `{command}`; its first sitting: `{run['command']}`",
        f"- machine: {machine.get('cpu', 'unknown')}, {machine.get('cores', '?')} cores, {machine.get('memory', '?')},"
        f" Linux {machine.get('kernel', '?')}; rules of measuring {machine.get('rules of measuring', '?')}",
        f"- JDK: {run['jdk']}; commit {run['commit']}; seed {run['seed']}",
        f"- begun {run['startedAt'][:19]}Z, written {datetime.now(timezone.utc):%Y-%m-%dT%H:%M:%SZ}",
        f"- trials: {len(ended)} of {summary['planned']} ended, {len(bad)} void, {len(cold)} cold or of unknown warmth",
    ]


def figures(summary):
    """{(technology, message, load, metric): row} of what belongs to a whole cell."""
    return {(r["technology"], r["message"], r["load"], r["metric"]): r for r in summary["summary"] if "value" in r}


def counts(row):
    """Whether a figure may stand in a table: not cold, void, of unknown warmth or of too few restarts."""
    return row is not None and not row["validity"].startswith(("cold:", "void", "unknown", "too few"))


def number(value):
    """Three digits that count: 0.412, 12.3, 1 234."""
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
    return f"{value:,.{digits}f}".replace(",", " ")


def cell(row):
    """A figure with its interval, or why there is none."""
    if row is None:
        return "–"
    if not counts(row):
        return row["validity"].split(":")[0]
    return f"{number(row['value'])} ({number(row['low'])} to {number(row['high'])})"


def write(file, lines):
    Path(file).write_text("\n".join(lines) + "\n")
    print(f"written: {file}")
