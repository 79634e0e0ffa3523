#!/usr/bin/env python3
"""Derives published figures and verdicts of a run again, from the raw rows of its store, and says of each whether both agree.

Nothing of Parley stands between: the store is read by DuckDB's own library, histograms are decoded here from their bytes, and
percentiles, medians, bootstrap, t-tests and Holm's correction are written here after docs/measuring.md.
"""
import argparse
import csv
import json
import math
import random
import re
import statistics
import struct
import sys
import zlib
from collections import defaultdict
from pathlib import Path

import duckdb

HERE = Path(__file__).parent
COMPARED = ["latency_median", "latency_p99", "throughput", "cpu_per_request"]
HIGHER_IS_BETTER = {"throughput"}
OF_BOOT = {"boot_time", "installed_size", "memory_after_boot"}
OF_MESSAGE = {"wire_out", "wire_back", "payload_out", "payload_back"}
PERCENTILES = {"latency_min": 0, "latency_median": 50, "latency_p95": 95, "latency_p99": 99, "latency_p999": 99.9,
               "latency_max": 100}
FROM_SECONDS = set(PERCENTILES) | {"latency_mean", "throughput", "success_share"}
HOPS = {"hop_mean", "hop_median", "hop_p99"}
OF_GENERATOR = {"generator_cpu", "generator_compiling", "generator_ceiling", "generator_lateness_p99", "requests_sent", "replies_counted"}
NOT_OF_LOAD = OF_BOOT | OF_MESSAGE | {"first_call"}
OF_WARMTH = ("cold: ", "unknown: ")
MAX_COMPILING = 10
MAX_GENERATOR_COMPILING = 10
MAX_FALL = 0.10
ENOUGH_SAMPLES = 400
DRAWS = 2000
LEVEL = 0.05
TIE_BAND = 0.05
# An end of a 95 % interval is the 2.5 % quantile of a random draw: where it falls among draws of our own, it may be anywhere here.
END_AMONG_DRAWS = (0.002, 0.10)


# ---- the bytes of a histogram: HdrHistogram, encoding V2, compressed ----

def decoded(blob):
    """{highest value of a bucket: count}, in nanoseconds."""
    if not blob:
        return {}
    cookie, length = struct.unpack_from(">ii", blob)
    assert cookie & ~0xF0 == 0x1C849304, hex(cookie)
    data = zlib.decompress(blob[8:8 + length])
    cookie, size, offset, digits, lowest, _, _ = struct.unpack_from(">iiiiqqd", data)
    assert cookie & ~0xF0 == 0x1C849303 and offset == 0, hex(cookie)
    per_bucket = 1 << math.ceil(math.log2(2 * 10 ** digits))
    half = per_bucket // 2
    unit = int(math.log2(lowest))
    counts, index, at, end = {}, 0, 40, 40 + size
    while at < end:
        number, shift = 0, 0
        for nth in range(9):
            byte = data[at]
            at += 1
            if nth == 8:
                number |= byte << shift
                break
            number |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                break
        number = (number >> 1) ^ -(number & 1)
        if number < 0:
            index += -number
            continue
        if number > 0:
            bucket, sub = index // half - 1, index % half + half
            if bucket < 0:
                bucket, sub = 0, index
            width = 1 << (bucket + unit)
            counts[sub * width + width - 1] = number
        index += 1
    return counts


def merged(parts):
    total = defaultdict(int)
    for part in parts:
        for value, count in part.items():
            total[value] += count
    return total


def mean(counts):
    return sum(v * c for v, c in counts.items()) / sum(counts.values())


def percentile(counts, percent):
    """The smallest value that so many per cent of all do not exceed. Whole numbers: 99.9 % of 1 000 is rank 999."""
    total = sum(counts.values())
    rank = max(1, -(-int(round(percent * 10)) * total // 1000))
    seen = 0
    for value in sorted(counts):
        seen += counts[value]
        if seen >= rank:
            return value
    raise AssertionError("no such rank")


# ---- the store ----

class Store:
    def __init__(self, file):
        text = (HERE / "queries.sql").read_text()
        queries = dict(re.findall(r"-- name: (\w+)\n(.*?;)", text, re.S))
        with duckdb.connect(str(file), read_only=True) as connection:
            def rows(name):
                cursor = connection.execute(queries[name])
                names = [column[0] for column in cursor.description]
                return [dict(zip(names, row)) for row in cursor.fetchall()]

            self.run = rows("run")[0]
            self.study = "".join(row["text"] for row in rows("study"))
            self.technologies = [row["name"] for row in rows("technologies")]
            self.trials = rows("trials")
            self.seconds = defaultdict(list)
            for row in rows("seconds"):
                row["times"] = decoded(row["response_times"])
                self.seconds[row["trial_id"]].append(row)
            self.histograms = defaultdict(list)
            for row in rows("histograms"):
                self.histograms[row["trial_id"]].append((row["kind"], row["subject"], decoded(row["histogram"])))
            self.measured = defaultdict(list)
            for row in rows("measured"):
                self.measured[row["trial_id"], row["metric"]].append((row["subject"], row["value"]))
        for trial in self.trials:
            trial["counts_as"] = self.counts_as(trial) if trial["state"] == "FINISHED" else ""
            trial["valid"] = trial["counts_as"] == "valid"

    def counts_as(self, trial):
        """valid, or void, cold or unknown: by the reasons that stand with it, and by its rows."""
        stored = trial["void_reasons"]
        if any(not reason.startswith(OF_WARMTH) for reason in stored) or self.is_void(trial):
            return "void"
        kinds = {reason.split(":")[0] for reason in stored} | self.warmth(trial)
        return "cold" if "cold" in kinds else "unknown" if kinds else "valid"

    def is_void(self, trial):
        """What the rows themselves tell: wrong replies, too many unsent, nothing due, Little's law of closed clients."""
        seconds = self.seconds[trial["trial_id"]]
        sums = {o: sum(s[o] for s in seconds) for o in ("replied", "late", "wrong", "failed", "not_sent")}
        due = sum(sums.values())
        if due == 0 or sums["wrong"] > 0 or sums["not_sent"] > due / 1000:
            return True
        closed = re.fullmatch(r"closed:(\d+)", trial["load"])
        if closed:
            times = merged([s["times"] for s in seconds]
                           + [t for kind, _, t in self.histograms[trial["trial_id"]] if kind == "ERROR"])
            ended = due - sums["not_sent"]
            if ended > 0 and sum(times.values()) >= ended:
                in_system = mean(times) * sum(times.values()) / trial["window_ns"]
                edges = 2 * mean(times) / trial["window_ns"]
                return abs(in_system / int(closed[1]) - 1) > 0.05 + edges
        return False

    def warmth(self, trial):
        """What speaks against warm services: compilers took over a tenth of their processor time, or latency still fell."""
        if self.is_cold_start(trial):
            return set()
        shares = [v for subject, v in self.measured[trial["trial_id"], "compiling_share"] if subject == "system"]
        kinds = {"unknown"} if not shares else {"cold"} if max(shares) > MAX_COMPILING else set()
        if re.match(r"(closed|open):", trial["load"]):
            kinds |= fall(*self.halves(trial), self.rehearsed_ns(trial))
            if any(v > MAX_GENERATOR_COMPILING for _, v in self.measured[trial["trial_id"], "generator_compiling"]):
                kinds.add("cold")
        return kinds

    def rehearsed_ns(self, trial):
        """The median that services had reached before the window, or 0."""
        return max((v * 1e6 for _, v in self.measured[trial["trial_id"], "rehearsed_median"]), default=0)

    def is_cold_start(self, trial):
        """Whether the study asks how services begin: nothing rehearsed, nothing warmed up, a number of requests that is the same for all."""
        rows = self.measured[trial["trial_id"], "rehearsal_time"]
        return (any(v == 0 for _, v in rows) and trial["warm_up_most_ns"] == 0
                and re.match(r"(burst|rounds):", trial["load"]) is not None)

    def halves(self, trial):
        kept = [merged([h for kind, _, h in self.histograms[trial["trial_id"]] if kind == half])
                for half in ("FIRST_HALF", "SECOND_HALF")]
        if any(kept):
            return kept
        seconds = self.seconds[trial["trial_id"]]
        half = len(seconds) // 2
        return [merged([s["times"] for s in some]) for some in (seconds[:half], seconds[len(seconds) - half:])]

    def cell(self, technology, topology, message, load):
        return [t for t in self.trials if (t["technology"], t["topology"], t["message"],
                                           t["load"]) == (technology, topology, message, load)]

    def counted(self, *cell):
        """The trials that figures rest on: the valid, else the cold, else all that finished."""
        finished = [t for t in self.cell(*cell) if t["state"] == "FINISHED"]
        return ([t for t in finished if t["valid"]]
                or [t for t in finished if t["counts_as"] in ("cold", "unknown")] or finished)

    def tried(self, *cell):
        """In how many restarts a trial ended, whatever became of it."""
        return len({t["restart"] for t in self.cell(*cell) if t["state"] != "PLANNED"})

    def window_seconds(self, trial):
        own = self.measured[trial["trial_id"], "window_length"]
        return own[0][1] if own else trial["window_ns"] / 1e9


def fall(first, second, rehearsed_ns=0):
    """{cold}, {unknown} or nothing: whether the median still fell from one half of a window to the other."""
    if sum(second.values()) >= ENOUGH_SAMPLES:
        end = percentile(second, 50)
    else:
        end = (median_interval(second) or (0, 0))[0]
    if rehearsed_ns > 0 and end >= rehearsed_ns * (1 - MAX_FALL):
        return set()
    if min(sum(first.values()), sum(second.values())) >= ENOUGH_SAMPLES:
        return {"cold"} if percentile(second, 50) < percentile(first, 50) * (1 - MAX_FALL) else set()
    early, late = median_interval(first), median_interval(second)
    if early is None or late is None:
        return {"unknown"}
    if late[0] >= early[1] * (1 - MAX_FALL):
        return set()
    return {"cold"} if late[1] < early[0] * (1 - MAX_FALL) else {"unknown"}


def median_interval(counts):
    """The values of those ranks between which the median lies at 95 %."""
    total = sum(counts.values())
    low = math.floor(total / 2 - 0.98 * math.sqrt(total))
    high = math.ceil(1 + total / 2 + 0.98 * math.sqrt(total))
    if low < 1 or high > total:
        return None
    values = [value for value in sorted(counts) for _ in range(counts[value])]
    return values[low - 1], values[high - 1]


def of_seconds(store, metric, trial, seconds):
    """One metric of some seconds of a trial; None where it means nothing there."""
    if metric in ("throughput", "success_share"):
        replied = sum(s["replied"] for s in seconds)
        due = replied + sum(s["late"] + s["wrong"] + s["failed"] + s["not_sent"] for s in seconds)
        if due == 0:
            return None
        return replied / store.window_seconds(trial) if metric == "throughput" else 100 * replied / due
    times = merged([s["times"] for s in seconds])
    if not times:
        return None
    return (mean(times) if metric == "latency_mean" else percentile(times, PERCENTILES[metric])) / 1e6


def by_restart(trials):
    restarts = defaultdict(list)
    for trial in trials:
        restarts[trial["restart"]].append(trial)
    return dict(sorted(restarts.items()))


def of_rows(store, metric, trials, wanted):
    """{restart: value} of what was read from the machine: a row for the whole system, else the sum of a use, else the typical service."""
    points = {}
    for restart, own in by_restart(trials).items():
        values = []
        for trial in own:
            rows = [(s, v) for s, v in store.measured[trial["trial_id"], metric] if wanted(s)]
            if rows:
                system = [v for s, v in rows if s == "system"]
                each = system or [v for _, v in rows]
                values.append(sum(each) if metric == "cpu_share" and not system else statistics.median(each))
        if values:
            points[restart] = statistics.median(values)
    return points


def points(store, cell, metric, part=None):
    """{restart: value}."""
    technology, topology, message, _ = cell
    trials = store.counted(*cell)
    everywhere = [t for t in store.trials if t["technology"] == technology and t["topology"] == topology]
    if metric in FROM_SECONDS:
        found = {}
        for restart, own in by_restart(trials).items():
            values = [of_seconds(store, metric, t, store.seconds[t["trial_id"]]) for t in own]
            values = [v for v in values if v is not None]
            if values:
                found[restart] = statistics.median(values)
        return found
    if metric in HOPS:
        found = {}
        for restart, own in by_restart(trials).items():
            times = merged([h for t in own for kind, subject, h in store.histograms[t["trial_id"]]
                            if kind == "HOP" and part in (None, subject)])
            if times:
                found[restart] = (mean(times) if metric == "hop_mean"
                                  else percentile(times, 50 if metric == "hop_median" else 99)) / 1e6
        return found

    def wanted(subject):
        return subject == part if part else subject != "empty" and (metric in OF_GENERATOR or subject != "generator")

    if metric in OF_BOOT or metric == "first_call":
        return of_rows(store, metric, everywhere, wanted)
    found = of_rows(store, metric, trials, wanted)
    if metric == "cpu_per_request" and not found:
        return cpu_per_request(store, trials)
    if metric in OF_MESSAGE and not found:
        return of_rows(store, metric, [t for t in everywhere if t["message"] == message], wanted)
    return found


def cpu_per_request(store, trials):
    """{restart: milliseconds} from shares of cores, where no row has it: all services' cores times the window, over what was answered."""
    found = {}
    for restart, own in by_restart(trials).items():
        values = []
        for trial in own:
            shares = of_rows(store, "cpu_share", [trial], lambda subject: subject not in ("empty", "generator"))
            answered = sum(s["replied"] + s["late"] + s["wrong"] for s in store.seconds[trial["trial_id"]])
            if shares and answered:
                values.append(shares[restart] / 100 * store.window_seconds(trial) * 1000 / answered)
        if values:
            found[restart] = statistics.median(values)
    return found


# ---- the bootstrap: restarts first, then seconds ----

def pools(store, cell, metric, chance, size=240):
    """{restart: values of its seconds drawn again}; the value itself where it has no seconds to draw from."""
    found = {}
    if metric not in FROM_SECONDS:
        return {restart: [value] for restart, value in points(store, cell, metric).items()}
    for restart, own in by_restart(store.counted(*cell)).items():
        values = []
        for trial in own:
            seconds = store.seconds[trial["trial_id"]]
            for _ in range(size if seconds else 0):
                value = of_seconds(store, metric, trial, chance.choices(seconds, k=len(seconds)))
                if value is not None:
                    values.append(value)
        if values:
            found[restart] = values
    return found


def draws(pool, chance, middle=statistics.median):
    restarts = list(pool)
    return sorted(middle([chance.choice(pool[chance.choice(restarts)]) for _ in restarts]) for _ in range(DRAWS))


def is_end(among, end, value, share, is_low):
    """Whether a published end lies where the 2.5 % or 97.5 % quantile of a random draw may lie."""
    if math.isclose(end, value, rel_tol=1e-9):
        return True
    below = sum(d < end * (1 - 1e-9) for d in among) / len(among)
    above = sum(d > end * (1 + 1e-9) for d in among) / len(among)
    least, most = END_AMONG_DRAWS
    tail, rest = (below, 1 - above) if is_low else (above, 1 - below)
    return tail <= most and rest >= least


# ---- Student's t, by the incomplete beta function (Lentz's continued fraction) ----

def incomplete_beta(a, b, x):
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x > (a + 1) / (a + b + 2):
        return 1 - incomplete_beta(b, a, 1 - x)
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    fraction = d
    for m in range(1, 500):
        for numerator in (m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
                          -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))):
            d = 1 / (1 + numerator * d)
            c = 1 + numerator / c
            fraction *= c * d
        if abs(c * d - 1) < 1e-14:
            break
    return front * fraction / a


def upper_tail(t, freedom):
    """How likely Student's t is above t."""
    both = incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t)) if t else 1.0
    return both / 2 if t >= 0 else 1 - both / 2


def t_tests(ratios, border):
    """p of a ratio of 1, and p of one that is as far from 1 as the border or further: the less sure of two one-sided tests."""
    logs = [math.log(r) for r in ratios]
    if len(logs) < 2:
        return 1.0, 1.0
    error = statistics.stdev(logs) / math.sqrt(len(logs))
    middle = statistics.fmean(logs)
    if error == 0:
        return (1.0 if middle == 0 else 0.0), (0.0 if abs(middle) < border else 1.0)
    freedom = len(logs) - 1
    return (2 * upper_tail(abs(middle) / error, freedom),
            max(upper_tail((border - middle) / error, freedom), upper_tail((border + middle) / error, freedom)))


# ---- verdicts ----

def noise_floor(samples, chance):
    """How far halves of a technology's restarts are from each other: the 95 % quantile over random splits, less √2."""
    apart = []
    for values in samples:
        if len(values) >= 4:
            for _ in range(2000):
                shuffled = chance.sample(values, len(values))
                half = len(values) // 2
                apart.append(abs(math.log(statistics.median(shuffled[:half]) / statistics.median(shuffled[half:])))
                             / math.sqrt(2))
    return math.expm1(sorted(apart)[math.ceil(0.95 * len(apart)) - 1]) if apart else None


def contest(store, situation, metric, chance):
    """{(one, other): its ratio, interval, p and verdict} of all pairs of technologies under one condition."""
    order = [t for t in store.technologies
             if any((x["technology"], x["topology"], x["message"], x["load"]) == (t, *situation) for x in store.trials)]
    sound, pooled, unsound = {}, {}, {}
    for technology in order:
        cell = (technology, *situation)
        own = points(store, cell, metric)
        counted = store.counted(*cell)
        if own and statistics.median(own.values()) > 0 and any(t["valid"] for t in counted):
            sound[technology] = own
            pooled[technology] = pools(store, cell, metric, chance)
        else:
            unsound[technology] = without_verdict(counted)
    results, names = {}, list(sound)
    comparisons = len(names) * (len(names) - 1) // 2
    for i, one in enumerate(names):
        for other in names[i + 1:]:
            results[one, other] = pair(store, situation, sound, pooled, one, other, comparisons, chance)
    least = 0
    for nth, key in enumerate(sorted(results, key=lambda key: results[key]["p"])):
        least = max(least, min(1, results[key]["p"] * (len(results) - nth)))
        results[key]["corrected"] = least
    for result in results.values():
        result["verdict"] = verdict(result, metric, LEVEL / max(1, len(names) - 1))
    for i, one in enumerate(order):
        for other in order[i + 1:]:
            kinds = {unsound[t] for t in (one, other) if t in unsound}
            if kinds:
                worst = min(kinds, key=["cold", "unknown", "void"].index)
                results[one, other] = dict(verdict=worst, ratio=None, restarts=0)
    return results


def without_verdict(counted):
    """What stands in its place where a side has no trial that counts."""
    kinds = {t["counts_as"] for t in counted}
    if kinds and kinds <= {"cold", "unknown"}:
        return "cold" if "cold" in kinds else "unknown"
    return "void"


def pair(store, situation, sound, pooled, one, other, comparisons, chance):
    both = sorted(sound[one].keys() & sound[other].keys())
    tried = max(store.tried(one, *situation), store.tried(other, *situation))
    values = list(sound[one].values()) + list(sound[other].values())
    open_pair = dict(restarts=len(both), is_open=True, p=1.0, ratio=None)
    if 2 * len(both) <= tried or not all(v > 0 for v in values):
        return open_pair
    ratios = [sound[one][r] / sound[other][r] for r in both]
    number = max(DRAWS, math.ceil(20 * comparisons / LEVEL))
    drawn = sorted(statistics.median([over(chance.choice(pooled[one][r]), chance.choice(pooled[other][r]))
                                      for r in chance.choices(both, k=len(both))]) for _ in range(number))
    beyond_1 = min(sum(d <= 1 for d in drawn), sum(d >= 1 for d in drawn))
    ratio = statistics.median(ratios)
    low = min(ratio, drawn[math.ceil(0.025 * number) - 1])
    high = max(ratio, drawn[math.ceil(0.975 * number) - 1])
    if low <= 0 or math.isinf(high):
        return open_pair
    of_one, of_border = t_tests(ratios, math.log1p(TIE_BAND))
    floor = noise_floor([list(sound[one].values()), list(sound[other].values())], chance)
    return dict(restarts=len(both), is_open=False, ratio=ratio, drawn=drawn, low=low, high=high, beyond=of_border,
                least=max(TIE_BAND, floor or 0), p=max(min(1, 2 * (beyond_1 + 1) / (number + 1)), of_one))


def over(one, other):
    return one / other if other else math.inf


def verdict(result, metric, tie_level):
    if result["is_open"] or result["restarts"] < 3:
        return "undecided"
    low, high, ratio, least = result["low"], result["high"], result["ratio"], result["least"]
    if low > 1 / (1 + TIE_BAND) and high < 1 + TIE_BAND and result["beyond"] < tie_level:
        return "equivalent"
    is_far = ratio > 1 + least or ratio < 1 / (1 + least)
    if result["corrected"] < LEVEL and (low > 1 or high < 1) and is_far:
        return "better" if (ratio > 1) == (metric in HIGHER_IS_BETTER) else "worse"
    return "undecided"


# ---- the audit ----

def audit_figure(store, row, is_part, in_csv, seed):
    cell = (row["technology"], row["topology"], row["message"], row["load"])
    metric = row["metric"]
    part = row["subject"] if is_part else None
    found = points(store, cell, metric, part)
    if not found:
        return None, ["nothing in the raw rows"]
    middle = statistics.fmean if metric == "success_share" else statistics.median
    value = middle(found.values())
    tried = len(found) if metric in NOT_OF_LOAD else max(store.tried(*cell), len(found))
    faults = []
    if not math.isclose(value, row["value"], rel_tol=1e-9, abs_tol=1e-12):
        faults.append(f"value {row['value']!r}")
    if len(found) != row["restarts"]:
        faults.append(f"restarts {row['restarts']}, here {len(found)}")
    if tried != row["tried"]:
        faults.append(f"of {row['tried']} restarts, here of {tried}")
    if metric not in NOT_OF_LOAD:
        kind = state(store, store.counted(*cell), len(found), tried)
        if not row["validity"].startswith(kind):
            faults.append(f"validity {row['validity']!r}, here {kind}")
    if in_csv is not None and not math.isclose(value, in_csv, rel_tol=1e-5, abs_tol=1e-9):
        faults.append(f"in the CSV {in_csv!r}")
    chance = random.Random(seed)
    pool = {r: [v] for r, v in found.items()} if is_part else pools(store, cell, metric, chance)
    among = draws(pool, chance, middle)
    if not is_end(among, row["low"], row["value"], 0.025, True):
        faults.append(f"low end {row['low']!r}, here {among[49]!r}")
    if not is_end(among, row["high"], row["value"], 0.975, False):
        faults.append(f"high end {row['high']!r}, here {among[-50]!r}")
    return value, faults


def state(store, counted, restarts, tried):
    """How the published validity must begin."""
    if not any(t["valid"] for t in counted):
        return without_verdict(counted)
    if 2 * restarts > tried and any(store.is_cold_start(t) for t in counted):
        return "cold start"
    return "too few" if 2 * restarts <= tried else "indicative" if restarts < max(5, tried) else ""


def audit_verdict(store, row, contests, seed):
    situation = (row["topology"], row["message"], row["load"])
    key = (*situation, row["metric"])
    if key not in contests:
        contests[key] = contest(store, situation, row["metric"], random.Random(seed))
    result = contests[key].get((row["technology"], row["against"]))
    if result is None:
        return None, ["no such pair in the raw rows"]
    faults = []
    if result["verdict"] != row["verdict"]:
        faults.append(f"verdict {row['verdict']}, here {result['verdict']} (p {result.get('corrected')})")
    if result["ratio"] is not None:
        if not math.isclose(result["ratio"], row.get("ratio", math.nan), rel_tol=1e-9):
            faults.append(f"ratio {row.get('ratio')!r}, here {result['ratio']!r}")
        elif not (is_end(result["drawn"], row["low"], row["ratio"], 0.025, True)
                  and is_end(result["drawn"], row["high"], row["ratio"], 0.975, False)):
            faults.append(f"interval {row['low']!r} to {row['high']!r}, here {result['low']!r} to {result['high']!r}")
    elif "ratio" in row:
        faults.append("a ratio where none can be")
    return result, faults


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("folder", type=Path, nargs="+", help="a run's folder: results.duckdb, summary.json, summary.csv")
    arguments.add_argument("--seed", type=int, default=20261122)
    arguments.add_argument("--figures", type=int, default=30)
    arguments.add_argument("--verdicts", type=int, default=20)
    given = arguments.parse_args()
    figures, verdicts, stores, published = [], [], {}, {}
    for folder in sorted(given.folder):
        summary = json.loads((folder / "summary.json").read_text())
        with open(folder / "summary.csv", newline="") as file:
            published[folder] = {(r["technology"], r["topology"], r["message"], r["load"], r["metric"]): float(r["value"])
                                 for r in csv.DictReader(file) if r["value"]}
        figures += [(folder, False, row) for row in summary["summary"] if "value" in row]
        figures += [(folder, True, row) for row in summary["details"] if "value" in row]
        verdicts += [(folder, row) for row in summary["comparisons"]]
    chance = random.Random(given.seed)
    figures = chance.sample(figures, min(given.figures, len(figures)))
    verdicts = chance.sample(verdicts, min(given.verdicts, len(verdicts)))

    def store(folder):
        if folder not in stores:
            stores[folder] = Store(folder / "results.duckdb")
            run = stores[folder].run
            print(f"# {folder}: `{run['command']}`, commit {run['git_commit']}, seed {run['seed']}")
        return stores[folder]

    failed, contests = 0, defaultdict(dict)
    for nth, (folder, is_part, row) in enumerate(figures):
        cell = (row["technology"], row["topology"], row["message"], row["load"], row["metric"])
        value, faults = audit_figure(store(folder), row, is_part, None if is_part else published[folder].get(cell), given.seed + nth)
        failed += bool(faults)
        said = "DISAGREE: " + "; ".join(faults) if faults else "agree"
        shown = "nothing" if value is None else f"{value:.6g}"
        print(f"figure {nth + 1:2}  {' '.join(cell)} {row['subject']}: {shown} {row['unit']}"
              f" [{row['low']:.6g}, {row['high']:.6g}]  {said}")
    for nth, (folder, row) in enumerate(verdicts):
        result, faults = audit_verdict(store(folder), row, contests[folder], given.seed + 1000 + nth)
        failed += bool(faults)
        said = "DISAGREE: " + "; ".join(faults) if faults else "agree"
        ratio = "no ratio" if not result or result["ratio"] is None else f"ratio {result['ratio']:.4g}"
        print(f"verdict {nth + 1:2}  {row['topology']} {row['message']} {row['load']} {row['metric']}:"
              f" {row['technology']} against {row['against']} {row['verdict']}, {ratio}  {said}")
    audited = len(figures) + len(verdicts)
    print(f"{audited - failed} of {audited} agree ({len(figures)} figures, {len(verdicts)} verdicts, seed {given.seed})")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
