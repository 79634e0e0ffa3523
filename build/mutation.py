"""Prints a class, its mutants, how many were noticed and the share, a line each; then the survivors. Argument: PIT's mutations.xml, also of a run that was cut off."""

import collections
import sys
import xml.etree.ElementTree as ElementTree

NOTICED = ("KILLED", "TIMED_OUT", "MEMORY_ERROR", "RUN_ERROR")

text = open(sys.argv[1], encoding="utf-8", errors="replace").read()
if not text.rstrip().endswith("</mutations>"):
    text = text[: text.rindex("</mutation>")] + "</mutation></mutations>"
classes = collections.defaultdict(collections.Counter)
survivors = []
for mutant in ElementTree.fromstring(text):
    name = mutant.findtext("mutatedClass").split(".")[-1].split("$")[0]
    status = mutant.get("status")
    classes[name][status] += 1
    if status not in NOTICED:
        where = f"{name}:{mutant.findtext('lineNumber')} {mutant.findtext('mutatedMethod')}"
        survivors.append(f"  {where}: {mutant.findtext('description')} ({status.lower()})")
for name, by in sorted(classes.items()):
    mutants = sum(by.values())
    noticed = sum(by[status] for status in NOTICED)
    print(f"{name:28} {mutants:4} mutants {noticed:4} noticed {100 * noticed / mutants:5.1f} %  of these by time-out {by['TIMED_OUT']}")
print("\n".join(sorted(survivors)))
