#!/usr/bin/env python3
"""Has Grafana's own library (grafana-foundation-sdk) read the dashboard and write it again, and tells what did not come back as it went in.

What Grafana's schema does not know is lost on that way, and what it knows as something else comes back changed. Exit code 1 where anything did.

    python3 -m venv target/python && target/python/bin/pip install grafana-foundation-sdk
    target/python/bin/python docs/observing/check-dashboard.py [DASHBOARD.json]
"""
import json
import sys
from importlib.metadata import version
from pathlib import Path

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard


def changes(before, after, place=""):
    """Each place of what went in that is missing or another value in what came back."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key, value in before.items():
            if key in after:
                yield from changes(value, after[key], f"{place}.{key}")
            else:
                yield f"{place}.{key} is not in Grafana's schema"
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for i, (one, other) in enumerate(zip(before, after)):
            yield from changes(one, other, f"{place}[{i}]")
    elif before != after:
        yield f"{place}: {before!r} came back as {after!r}"


def main():
    file = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("grafana-dashboard.json")
    register_default_plugins()
    before = json.loads(file.read_text())
    after = json.loads(JSONEncoder().encode(Dashboard.from_json(before)))
    found = list(changes(before, after))
    print("\n".join(found) or f"{file.name}: {len(before['panels'])} panels, nothing lost and nothing changed by"
                              f" grafana-foundation-sdk {version('grafana-foundation-sdk').split('!')[-1]}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
