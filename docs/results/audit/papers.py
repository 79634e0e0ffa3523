#!/usr/bin/env python3
"""Derives recorded figures and verdicts of reproduced papers again, from the raw rows of their stores, and says of each whether both agree.

FOLDER is what ./parley reproduce wrote: PAPER/figures.csv, PAPER/claims.csv, PAPER/PART/results.duckdb. Claims are read and evaluated here, after
docs/studies.md; figures come from audit.py, which reads raw tables only. Nothing of Parley stands between. The standard scale and the paper's.
"""
import argparse
import csv
import itertools
import math
import random
import re
import statistics
import sys
from pathlib import Path

import audit

PAPERS = Path(__file__).resolve().parents[3] / "workbench/studies/src/main/resources/dev/parley/studies"
TIE_BAND = 1.05
UNITS = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2 ** 10, "MiB": 2 ** 20, "GiB": 2 ** 30, "µs": 1e-3, "ms": 1, "s": 1e3, "min": 6e4}
# A verdict hangs on ends of intervals that are drawn at random: it agrees where an end anywhere among these quantiles gives it.
TAILS = (0.025, 0.002, 0.10)


# ---- the language of claims: docs/studies.md ----

class Parser:
    """Statements and figures as nested tuples."""

    def __init__(self, text):
        self.text, self.at = text, 0

    def take(self, pattern):
        found = re.compile(r"\s*(" + pattern + ")").match(self.text, self.at)
        self.at = found.end() if found else self.at
        return found[1] if found else None

    def need(self, pattern):
        taken = self.take(pattern)
        if taken is None:
            raise ValueError(f"{pattern} at {self.at} of {self.text}")
        return taken

    def statement(self):
        kind = self.take(r"(?:every|some|most)\b") or self.take(r"\d+(?=\s+of\s+\w+\s+in\b)")
        if kind:
            if kind.isdigit():
                self.need(r"of\b")
            sets = []
            while True:
                name = self.need(r"\w+")
                self.need(r"in\b")
                sets.append((name, [v.strip() for v in self.need(r"\{[^}]*\}")[1:-1].split(",")]))
                if not self.take(","):
                    break
            self.need(":")
            return "each", kind, sets, self.statement()
        left = self.simple()
        while word := self.take(r"(?:and|or)\b"):
            left = (word, left, self.simple())
        return left

    def simple(self):
        if self.take(r"not\b"):
            return "not", self.simple()
        if self.take(r"similar\b"):
            self.need(r"\(")
            left = self.figure()
            self.need(",")
            right = self.figure()
            self.need(",")
            factor = float(self.need(r"[\d.]+"))
            self.need(r"\)")
            return "within", left, right, 1 / factor, factor
        before = self.at
        if self.take(r"\("):
            try:
                inner = self.statement()
                self.need(r"\)")
                return inner
            except ValueError:
                self.at = before
        left, sign = self.figure(), self.need("<=|>=|<|>")
        band = TIE_BAND if "=" in sign else 1
        return ("within", left, self.figure(), *((0, band) if sign[0] == "<" else (1 / band, math.inf)))

    def figure(self):
        return self.chain("[+-]", lambda: self.chain("[*/]", self.factor))

    def chain(self, signs, inner):
        left = inner()
        while sign := self.take(signs):
            left = (sign, left, inner())
        return left

    def factor(self):
        if self.take(r"\("):
            inner = self.figure()
            self.need(r"\)")
            return inner
        if number := self.take(r"\d[\d.]*"):
            return "number", float(number)
        name = self.need(r"\w+")
        if name in ("min", "max") and self.take(r"\("):
            left = self.figure()
            while self.take(","):
                left = (name, left, self.figure())
            self.need(r"\)")
            return left
        conditions = self.take(r"\[[^\]]*\]") or "[]"
        return "cell", name, dict((k.strip(), v.strip()) for k, v in (one.split("=", 1) for one in conditions[1:-1].split(",") if one))


OPERATORS = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "min": min, "max": max,
             "/": lambda a, b: a / b if b else math.nan}


# ---- figures, restart by restart ----

class Figure:
    """{restart: (value, values of its seconds drawn again)}; a number has no restarts and is the same in all."""

    def __init__(self, restarts, tried, is_mean=False, number=None):
        self.restarts, self.tried, self.number = restarts, tried, number
        self.middle = statistics.fmean if is_mean else statistics.median
        self.is_mean = is_mean

    @property
    def value(self):
        return self.number if self.number is not None else self.middle([v for v, _ in self.restarts.values()])

    def joined(self, other, operator):
        """Within each restart that both have; None where there is none, or where it is not a number."""
        if self.number is not None and other.number is not None:
            result = operator(self.number, other.number)
            return Figure({}, 0, number=result) if math.isfinite(result) else None
        common = (self.restarts.keys() & other.restarts.keys() if self.number is None and other.number is None
                  else (self.restarts or other.restarts).keys())
        sides = [{r: s.restarts.get(r, (s.number, [s.number])) for r in common} for s in (self, other)]
        both = {}
        for r in sorted(common):
            (v1, p1), (v2, p2) = sides[0][r], sides[1][r]
            n = max(len(p1), len(p2))
            both[r] = (operator(v1, v2), [operator(p1[i % len(p1)], p2[i % len(p2)]) for i in range(n)])
        tried = min(s.tried for s in (self, other) if s.number is None)
        sound = both and all(math.isfinite(v) for v, _ in both.values())
        return Figure(both, tried, self.is_mean or other.is_mean) if sound else None

    def draws(self, chance):
        pools = [pool for _, pool in self.restarts.values()]
        return sorted(self.middle([chance.choice(chance.choice(pools)) for _ in pools]) for _ in range(audit.DRAWS))


def plain(load):
    """A load without its lengths and bursts without their number, which a scale changes: users:300:60s:10 and users:300:5s:10:even:shared begin alike."""
    tokens = [t for t in load.replace("grid:", "rounds:").split(":") if not re.fullmatch(r"[\d.]+(ms|s|m|h)", t)]
    return tokens[:2] if tokens[0] == "burst" else tokens


def length_ms(load):
    found = re.search(r":([\d.]+)(ms|s|m|h)(?::|$)", load)
    return float(found[1]) * {"ms": 1, "s": 1e3, "m": 6e4, "h": 3.6e6}[found[2]] if found else None


class Part:
    def __init__(self, name, store_file, published):
        self.name, self.published = name, published
        self.store = audit.Store(store_file)
        text = self.store.study
        self.topologies = re.findall(r'"([^"]+)"', re.search(r"^topologies: (.*)$", text, re.M)[1])
        planned = {(t["message"], t["load"]) for t in self.store.trials}
        self.loads = [x for x in dict.fromkeys(re.findall(r'"([^"]+)"', text)) if any(x == load for _, load in planned)]
        self.messages = [x for x in dict.fromkeys(re.findall(r'"([^"]+)"', text)) if any(x == m for m, _ in planned)]
        self.planned = planned
        self.is_alone = "alone: true" in text or len(self.messages) == 1

    def places(self, technology, topology, message, loads):
        """(topology, message, load) of each condition that was planned; loads None for the first there is."""
        if technology not in self.store.technologies:
            return
        own = [t for t in self.topologies if topology in ("", t)]
        for load in self.loads if own else []:
            if loads is not None and not any(plain(load)[:len(plain(w))] == plain(w) for w in loads):
                continue
            fitting = [m for m in self.messages if message in ("", m) and (m, load) in self.planned]
            if fitting:
                yield own[0], fitting[0], load
                if loads is None:
                    return

    def decides(self, metric, cell):
        """Whether the scale lets a figure decide: lengths, users that come for as long as in the paper, memory of one message."""
        if metric in audit.NOT_OF_LOAD:
            return True
        load, trial = cell[3], next(t for t in self.store.trials if t["load"] == cell[3])
        if metric in ("success_share", "users_at_first_failure") and load.startswith("users:"):
            theirs = [length_ms(x) for x in self.published if plain(load)[:len(plain(x))] == plain(x)]
            if theirs and length_ms(load) < max(theirs):
                return False
        if metric == "memory_after_load" and not self.is_alone:
            return False
        if load.startswith("staircase:"):
            if metric == "clients_at_limit" and ":x" in load:
                return False
            return length_ms(load) >= max(3000, 2 * trial["limit_ns"] / 1e6)
        if load.startswith("open:") and float(load.split(":")[1]) * trial["window_ns"] / 1e9 < 16:
            return False
        return load.startswith(("burst:", "rounds:")) or (length_ms(load) or trial["window_ns"] / 1e6) >= 1000

    def figure(self, metric, cell, subject, chance):
        """The figure and whether it decides anything; None where nothing was measured."""
        is_mean = metric == "success_share"
        counted = self.store.counted(*cell)
        if metric.startswith("step_") or subject and metric not in audit.HOPS:
            names = sorted({s for t in counted for s, _ in self.store.measured[t["trial_id"], metric]} - {"system", "empty", "generator"})
            wanted = {"all": names, "counted": [n for n in names if n != "round 0"]}.get(subject, [subject] if subject else names)
            each = [audit.points(self.store, cell, metric, name) for name in wanted]
            whole = set.intersection(*(set(one) for one in each)) if each else set()
            found = {r: (v, [v]) for r in sorted(whole) for v in [statistics.fmean([one[r] for one in each])]}
        elif subject:
            found = {r: (v, [v]) for r, v in audit.points(self.store, cell, metric, subject).items()}
        else:
            points = audit.points(self.store, cell, metric)
            pools = self.pools(cell, metric, chance)
            found = {r: (v, pools.get(r, [v])) for r, v in points.items()}
        if not found:
            return None, False
        tried = len(found) if metric in audit.NOT_OF_LOAD else max(self.store.tried(*cell), len(found))
        counts = metric in audit.NOT_OF_LOAD or (any(t["valid"] for t in counted) and 2 * len(found) > tried)
        return Figure(found, tried, is_mean), counts and self.decides(metric, cell)

    def pools(self, cell, metric, chance, size=120):
        if metric != "latency_mean":
            return audit.pools(self.store, cell, metric, chance, size)
        found = {}
        for restart, own in audit.by_restart(self.store.counted(*cell)).items():
            values = []
            for trial in own:
                sums = [(sum(v * c for v, c in s["times"].items()), sum(s["times"].values())) for s in self.store.seconds[trial["trial_id"]]]
                for _ in range(size if sums else 0):
                    drawn = chance.choices(sums, k=len(sums))
                    if count := sum(c for _, c in drawn):
                        values.append(sum(s for s, _ in drawn) / count / 1e6)
            if values:
                found[restart] = values
        return found


# ---- a paper ----

class Paper:
    def __init__(self, folder, chance):
        self.folder, self.chance, self.cache = folder, chance, {}
        asked = re.search(r"^name: (.*)$", (folder.parent / "reproduce.txt").read_text(), re.M)[1]
        home = Path(asked) if (Path(asked) / "paper.yaml").exists() else PAPERS / folder.name
        text = (home / "paper.yaml").read_text()
        block = re.search(r"^conditions:\n((?:  .*\n)+)", text, re.M)
        self.conditions = {k: v.split(", ") for k, v in re.findall(r"^  (\S+): \[(.*)\]$", block[1] if block else "", re.M)}
        block = re.search(r"^metrics:\n((?:  .*\n)+)", text, re.M)
        self.metrics = {k: v.strip('"') for k, v in re.findall(r"^  (\w+): (.*)$", block[1] if block else "", re.M)}
        self.parts = []
        for name in re.findall(r"^  - part: (\S+)", text, re.M):
            if (folder / name / "results.duckdb").exists():
                published = re.findall(r"users:[^\"',\]]+", (home / f"{name}.yaml").read_text())
                self.parts.append(Part(name, folder / name / "results.duckdb", published))

    def measured(self, name, conditions, names, place=None):
        """A figure that decides, or None. Metrics of the paper's own are computed from ours."""
        bound = {k: bind(v, names) for k, v in conditions.items()}
        if name in self.metrics:
            first, _, second = bound.get("technology", "").partition("/")
            own = dict(first=first, second=second) if second else {}
            return self.computed(Parser(self.metrics[name]).figure(), own, bound, place)
        key = (name, tuple(sorted(bound.items())), place)
        if key not in self.cache:
            self.cache[key] = self.found(name, bound, place)
        return self.cache[key]

    def found(self, name, bound, place):
        technology, subject = bound.get("technology", ""), bound.get("subject", "")
        wanted = self.conditions.get(bound["load"], [bound["load"]]) if bound.get("load") else None
        for part in self.parts:
            if bound.get("part", part.name) != part.name:
                continue
            spots = [place] if place else part.places(technology, bound.get("topology", ""), bound.get("message", ""), wanted)
            for topology, message, load in spots:
                figure, decides = part.figure(name, (technology, topology, message, load), subject, self.chance)
                return figure if decides or place else None
        return None

    def computed(self, node, names, outer, place=None):
        if node[0] == "number":
            return Figure({}, 0, number=node[1])
        if node[0] == "cell":
            return self.measured(node[1], {**outer, **node[2]}, names, place)
        left, right = (self.computed(side, names, outer, place) for side in node[1:3])
        return left.joined(right, OPERATORS[node[0]]) if left and right else None

    def judged(self, node, names):
        """(verdict, …): True, False or None, one for each of TAILS."""
        if node[0] == "not":
            return tuple(None if v is None else not v for v in self.judged(node[1], names))
        if node[0] == "within":
            return self.compared(node, names)
        if node[0] == "each":
            _, kind, sets, body = node
            all_of = [self.judged(body, {**names, **dict(zip([n for n, _ in sets], values))})
                      for values in itertools.product(*(values for _, values in sets))]
            needed = {"every": len(all_of), "some": 1, "most": len(all_of) // 2 + 1}.get(kind) or int(kind)
        else:
            all_of = [self.judged(side, names) for side in node[1:]]
            needed = 2 if node[0] == "and" else 1
        return tuple(kleene(one, needed) for one in zip(*all_of))

    def compared(self, node, names):
        left, right = (self.computed(side, names, {}) for side in node[1:3])
        ratio = left.joined(right, OPERATORS["/"]) if left and right else None
        unsound = not ratio or ratio.number is not None or not left.value >= 0 or not right.value > 0
        if unsound or len(ratio.restarts) < 3 or len(ratio.restarts) <= ratio.tried // 2:
            return (None,) * len(TAILS)
        drawn = ratio.draws(self.chance)
        verdicts = []
        for tail in TAILS:
            low = min(ratio.value, drawn[math.ceil(tail * len(drawn)) - 1])
            high = max(ratio.value, drawn[math.ceil((1 - tail) * len(drawn)) - 1])
            verdicts.append(True if low > node[3] and high < node[4] else False if high < node[3] or low > node[4] else None)
        return tuple(verdicts)


def bind(text, names):
    for name, value in names.items():
        text = text.replace("@" + name, value)
    return text


def kleene(verdicts, needed):
    holding, still = sum(v is True for v in verdicts), sum(v is None for v in verdicts)
    return True if holding >= needed else False if holding + still < needed else None


# ---- the audit ----

def audit_figure(paper, row):
    conditions = {key: row[key] for key in ("technology", "topology", "message", "subject", "part") if row[key]}
    part = next(p for p in paper.parts if p.name == row["part"])
    technology = row["technology"].split("/")[0]
    places = [p for p in part.places(technology, row["topology"], row["message"], None if not row["our_load"] else [row["our_load"]])
              if not row["our_load"] or p[2] == row["our_load"]]
    found = paper.measured(row["metric"], conditions, {}, places[0]) if places else None
    if found is None:
        return None, ["nothing in the raw rows"]
    value = found.value * scale(row)
    return value, [] if math.isclose(value, float(row["ours"]), rel_tol=2e-5) else [f"recorded {row['ours']}, here {value:.6g}"]


def scale(row):
    """From the unit of the raw rows to the paper's."""
    metric = row["metric"]
    ours = ("MB" if metric in ("installed_size", "memory_after_load", "memory_after_boot", "broker_memory", "database_memory")
            else "B" if metric in audit.OF_MESSAGE
            else "ms" if metric in audit.PERCENTILES or metric in audit.HOPS or metric in ("latency_mean", "boot_time", "first_call", "step_time")
            else None)
    return UNITS[ours] / UNITS[row["unit"]] if ours else 1


WORDS = {True: "holds", False: "does not hold", None: "not decided here"}


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("folder", type=Path, nargs="+", help="what ./parley reproduce wrote, with PAPER/claims.csv in it")
    arguments.add_argument("--seed", type=int, default=20261122)
    arguments.add_argument("--figures", type=int, default=30)
    arguments.add_argument("--verdicts", type=int, default=20)
    given = arguments.parse_args()
    chance = random.Random(given.seed)
    papers = {file.parent: None for folder in given.folder for file in sorted(folder.glob("*/claims.csv"))}
    if not papers:
        arguments.error(f"{given.folder[0]} has no PAPER/claims.csv (expected: a folder that ./parley reproduce wrote)")
    figures = [(f, r) for f in papers for r in csv.DictReader(open(f / "figures.csv", newline="")) if r["ours"] and r["part"]
               and not r["validity"].startswith(("void", "not decided"))]
    claims = [(f, r) for f in papers for r in csv.DictReader(open(f / "claims.csv", newline="")) if r["expression"]]
    figures = chance.sample(figures, min(given.figures, len(figures)))
    claims = chance.sample(claims, min(given.verdicts, len(claims)))
    failed = 0

    def paper(folder):
        papers[folder] = papers[folder] or Paper(folder, chance)
        return papers[folder]

    for nth, (folder, row) in enumerate(figures):
        value, faults = audit_figure(paper(folder), row)
        failed += bool(faults)
        what = " ".join(filter(None, (folder.name, row["part"], row["metric"], row["technology"], row["message"], row["our_load"], row["subject"])))
        print(f"figure {nth + 1:2}  {what}: {'nothing' if value is None else f'{value:.6g}'} {row['unit']}  "
              + ("DISAGREE: " + "; ".join(faults) if faults else "agree"), flush=True)
    for nth, (folder, row) in enumerate(claims):
        verdicts = paper(folder).judged(Parser(row["expression"]).statement(), {})
        agrees = row["verdict"] in [WORDS[v] for v in verdicts]
        failed += not agrees
        print(f"verdict {nth + 1:2}  {folder.name} {row['id']}: {row['verdict']}  "
              + ("agree" if agrees else f"DISAGREE: here {WORDS[verdicts[0]]}"), flush=True)
    audited = len(figures) + len(claims)
    print(f"{audited - failed} of {audited} agree ({len(figures)} figures, {len(claims)} verdicts, seed {given.seed})")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
