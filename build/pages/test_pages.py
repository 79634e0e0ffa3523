"""Tests of the makers of pages, on invented summaries: python3 -m unittest discover -s build/pages"""
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import differences
import runs
import size_crossover

HERE = Path(__file__).parent


def comparison(size, ratio, verdict, half=1.1):
    return dict(topology="line:2", message=f"types:{size}", load="closed:1", metric="latency_median", technology="a", against="b",
                verdict=verdict, **({} if ratio is None else dict(ratio=ratio, low=ratio / half, high=ratio * half)))


def figure(technology, value, validity="valid", load="closed:1", metric="latency_median"):
    return dict(technology=technology, topology="line:2", message="types:100", load=load, metric=metric, subject="client", value=value,
                low=value * 0.9, high=value * 1.1, unit="ms", restarts=5, tried=5, validity=validity)


def summary(figures):
    return dict(format=1, run=dict(id="r", startedAt="2026-01-01T00:00:00Z", command="c", seed=1, commit="abc", jdk="25",
                                   machine=dict(cores="2")), trials=[], planned=0, comparisons=[], summary=figures)


class PagesTest(unittest.TestCase):
    def crossings(self, *rows):
        return size_crossover.crossings(size_crossover.pairs(dict(comparisons=rows), "closed:1", "latency_median").get(("a", "b"), []))

    def test_an_order_changes_where_the_ratio_passes_1_and_its_interval_where_the_ratios_ends_do(self):
        [(rises, before, after, at, low, high)] = self.crossings(comparison(100, 0.5, "better"), comparison(10000, 2, "worse"))
        self.assertTrue(rises)
        self.assertEqual((before, after), (100, 10000))
        self.assertAlmostEqual(at, 1000)
        # the ratio grows by 4 over two decades: 1.1 more or less is 2 * lg 1.1 / lg 4 decades
        self.assertAlmostEqual(low, 1000 / 10 ** 0.1375, delta=1)
        self.assertAlmostEqual(high, 1000 * 10 ** 0.1375, delta=2)

    def test_an_order_that_no_verdict_turns_does_not_change(self):
        self.assertEqual(self.crossings(comparison(100, 0.5, "better"), comparison(1000, 1.05, "undecided")), [])
        self.assertEqual(self.crossings(comparison(100, 0.5, "better"), comparison(1000, 0.7, "better")), [])

    def test_sizes_without_a_ratio_are_passed_over(self):
        [(rises, before, after, _, low, high)] = self.crossings(
            comparison(10, 2, "worse"), comparison(100, None, "cold"), comparison(1000, 1.02, "undecided"), comparison(10000, 0.5, "better"))
        self.assertFalse(rises)
        self.assertEqual((before, after), (10, 10000))
        self.assertLess(low, high)

    def test_what_was_cold_has_a_word_and_no_figure(self):
        self.assertEqual(runs.cell(figure("a", 1, "cold: compilers took 34 %")), "cold")
        self.assertEqual(runs.cell(figure("a", 1, "cold start; 3 restarts")), "1.00 (0.900 to 1.10)")
        self.assertEqual(runs.cell(None), "–")

    def table(self, figures):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "summary.json").write_text(json.dumps(summary(figures)))
            readme = Path(folder) / "README.md"
            readme.write_text("before\n<!-- figures: build/readme-table -->\nwhat stood here\n<!-- end of figures -->\nafter\n")
            done = subprocess.run([sys.executable, HERE / "readme_table.py", folder, readme], capture_output=True, text=True)
            return done.returncode, readme.read_text()

    def test_readmes_table_stands_between_its_marks_in_the_order_of_its_figures(self):
        code, text = self.table([figure("rpcx", 2), figure("grpc", 1), figure("rest", 0.5, "cold: compilers")])
        self.assertEqual(code, 0)
        self.assertTrue(text.startswith("before\n") and text.endswith("after\n") and "what stood here" not in text)
        self.assertLess(text.index("| grpc | 1.00"), text.index("| rpcx | 2.00"))
        self.assertLess(text.index("| rpcx |"), text.index("| rest | cold |"))

    def test_readme_stays_where_nothing_was_warm(self):
        code, text = self.table([figure("rpcx", 2, "cold: compilers")])
        self.assertEqual(code, 1)
        self.assertIn("what stood here", text)

    def test_ratios_that_turn_or_are_five_times_off_are_told_and_others_are_not(self):
        def row(technology, theirs, ours, load, validity="valid"):
            return dict(place="T", technology=technology, topology="", message="m", paper_load=load, our_load=load, metric="latency_mean",
                        subject="", part="p", theirs=theirs, ours=ours, validity=validity)
        told = list(differences.differing([
            row("a", "1", "1", "turned"), row("b", "2", "0.5", "turned"),
            row("a", "1", "1", "far"), row("b", "2", "11", "far"),
            row("a", "1", "1", "alike"), row("b", "2", "3", "alike"),
            row("a", "1", "1", "close"), row("b", "1.02", "0.9", "close"),
            row("a", "1", "1", "cold"), row("b", "2", "0.1", "cold", "cold: compilers")]))
        self.assertEqual([(t[6], t[1]) for t in told], [("turned", True), ("far", False)])


if __name__ == "__main__":
    unittest.main()
