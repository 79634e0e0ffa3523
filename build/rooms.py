#!/usr/bin/env python3
"""Moves the classes of dev.rpcx into their rooms: git mv, package lines, imports, visibility. A draft: see "What it does not do" below.

  build/rooms.py --table                   prints each class with its lines and its room
  build/rooms.py --edges                   prints every reference that goes upwards in the order of the rooms, with lines
  build/rooms.py [--room R]…               dry run: prints what would be done for these rooms (all rooms unless given)
  build/rooms.py --apply [--room R]…       does it
  build/rooms.py --fix LOG                 reads what javac said, and widens or imports what it complains of; to be repeated until LOG is empty

What it does not do: it cuts nothing (an upward reference is refused with --apply unless --anyway is given), renames nothing, changes no
prose, and formats nothing (spotless:apply follows). Members are widened by name: what it widens without need is found by a later look at
public members that nobody outside the package names. Types that are only inferred (var, chains) need no import, but their members need
to be public: --fix finds those. Names in strings, scripts, poms and resources are listed and left alone.
"""

import argparse
import re
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

HOME = Path(__file__).resolve().parents[1]
MAIN = "rpcx/rpcx/src/main/java"
TEST = "rpcx/rpcx/src/test/java"
OTHERS = ["rpcx/rpcx-races/src", "rpcx/rpcx-cli/src", "rpcx/rpcx-spring-boot-starter/src", "rpcx/rpcx-zookeeper/src", "rpcx/rpcx-consul/src",
          "rpcx/rpcx-kubernetes/src", "rpcx/rpcx-micrometer/src", "rpcx/rpcx-opentelemetry/src", "rpcx/rpcx-bench/src", "rpcx/rpcx-examples/src"]
FLAT = "dev.rpcx"
ORDER = ["base", "api", "ledger", "io", "wire", "call", "discovery", "client", "server", "door"]
PACKAGE = {room: f"dev.rpcx.internal.{room}" for room in ORDER} | {"base": "dev.rpcx.internal", "api": FLAT, "door": FLAT}
# client and server know nothing of each other, and the server nothing of discovery
FORBIDDEN = {("server", "client"), ("server", "discovery")}
TABLE = "\n".join(line for line in (HOME / TEST.replace("/java", "/resources/dev/rpcx/rooms.txt")).read_text().splitlines() if not line.startswith("#"))
# factories of the API, which stay: RoomsTest lets each of these references be
NAMED = {line for line in (HOME / TEST.replace("/java", "/resources/dev/rpcx/rooms-upwards.txt")).read_text().splitlines() if " -> " in line}
# types that the cuts make: known to --apply once they are there
MADE = {"ThreadTools": "base", "CallbackFailures": "base", "ThrowableText": "base", "TimedContext": "call",
        "CurrentCall": "call", "CallInvocation": "call", "HandledCall": "call", "Chain": "call", "CallFuture": "call", "WatchedStream": "call",
        "MetadataFields": "wire", "FrozenMap": "base", "TlsEngine": "io", "LocalFailure": "client", "ClientCore": "client", "HandledContext": "server",
        "ServerCore": "server", "HandlerThreads": "server", "ServerPlatform": "server", "TokenChecks": "call", "ClientSettings": "client",
        "ServerSettings": "server", "FaultyFrames": "wire"}
# what each room is, in a line: the first sentence of its package-info
INFO = {
    "base": "What every room may use and what knows none of them: checks, Protobuf's numbers, log lines, helpers of threads.",
    "ledger": "Counts what peers hold, resource by resource, and refuses what is beyond their shares.",
    "io": "Event loops, sockets, TLS and host names: who reads a socket, who writes to it, and how it closes.",
    "wire": "Frames and messages of both wires, and the connection that reads and writes them.",
    "call": "What a call is at either side: its context, its future, its streams, its token, and the form of its method.",
    "discovery": "Where the instances of a service are: fixed lists and DNS.",
    "client": "From a proxy to a connection and back: routes, instances, retries, and the slots of calls.",
    "server": "From a connection to a handler and back: admission, threads, replies.",
}
ROOM = {name: line.split()[0] for line in TABLE.strip().splitlines() for name in line.split()[1:]}
KEYWORDS = {"if", "for", "while", "switch", "catch", "return", "new", "throw", "super", "this", "synchronized", "assert", "try", "else"}


def blank(text):
    """The same text, as long, with blanks for comments and for what stands in strings."""
    out = []
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|"""(?:\\.|[^\\])*?"""|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
    last = 0
    for m in pattern.finditer(text):
        out.append(text[last:m.start()])
        found = m.group()
        hollow = re.sub(r"[^\n]", " ", found)
        out.append(found[0] + hollow[1:-1] + found[-1] if found[0] in "\"'" else hollow)
        last = m.end()
    out.append(text[last:])
    return "".join(out)


class Source:
    """One Java file: its text, its code without comments, its declarations."""

    def __init__(self, path):
        self.path = Path(path)
        self.text = self.path.read_text(encoding="utf-8")
        self.code = blank(self.text)
        self.name = self.path.stem
        found = re.search(r"^package ([\w.]+);", self.code, re.M)
        self.package = found.group(1) if found else ""
        self.imports = re.findall(r"^import (static )?([\w.]+(?:\.\*)?);", self.code, re.M)
        self.foreign = {full.split(".")[-1] for static, full in self.imports if not static and not full.startswith("dev.rpcx")}
        self.body = re.sub(r"^(import|package) [^\n]*", lambda m: " " * len(m.group()), self.code, flags=re.M)
        self.nested = set(re.findall(r"\b(?:class|interface|enum|record)\s+(\w+)", self.body)) - {self.name}

    def names(self, known, with_javadoc=True):
        """Classes of the table that this file names, by its code or by a link of its Javadoc."""
        text = self.body
        found = set()
        for m in re.finditer(r"(?<![\w.])((?:[a-z]\w*\.)*)([A-Z]\w*)\b", text):
            prefix, name = m.groups()
            if name not in known or name in self.nested or name == self.name:
                continue
            # a full name counts as it is; a simple one unless it is that of another package's class, as java.lang.reflect.Method
            if prefix == FLAT + "." or prefix == "" and name not in self.foreign:
                found.add(name)
        if with_javadoc:
            for m in re.finditer(r"(?:@(?:see|throws)|\{@(?:link|linkplain|value))\s+([A-Z]\w*)", self.text):
                if m.group(1) in known and m.group(1) not in self.nested | self.foreign | {self.name}:
                    found.add(m.group(1))
        return found

    def declarations(self):
        """Types and members but for those of private types: (path of types, kind, name, modifiers, offset at which a modifier can stand)."""
        code, out, stack, start, depth, i, hidden = self.body, [], [], 0, 0, 0, 0
        while i < len(code):
            c = code[i]
            if c == "(":
                depth += 1
            elif c == ")":
                depth -= 1
            elif depth == 0 and c in "{};":
                in_type = not stack or stack[-1]
                segment = code[start:i]
                if in_type and segment.strip() and c != "}":
                    kind, name, mods, at = self._declared(segment, start, stack)
                    if kind == "field" and c == "{" and name:
                        # an array or an anonymous class: its end is the field's
                        level = 1
                        while level:
                            i += 1
                            level += {"{": 1, "}": -1}.get(code[i], 0)
                        i += 1
                        continue
                    if name and (not stack or not hidden):
                        out.append((tuple(s for s in stack if s), kind, name, mods, at))
                    if c == "{":
                        stack.append(name if kind == "type" else "")
                        if hidden or kind == "type" and "private" in mods:
                            hidden += 1
                elif c == "{":
                    stack.append("")
                    hidden += 1 if hidden else 0
                if c == "}" and stack:
                    stack.pop()
                    hidden -= 1 if hidden else 0
                start = i + 1
            i += 1
        return out

    @staticmethod
    def _declared(segment, start, stack):
        at = 0
        while True:
            blanks = re.match(r"\s*", segment[at:]).end()
            annotation = re.match(r"@(?!interface)[\w.]+(\s*\((?:[^()]|\([^()]*\))*\))?", segment[at + blanks:])
            if not annotation:
                at += blanks
                break
            at += blanks + annotation.end()
        head = segment[at:]
        mods = re.match(r"((?:public|protected|private|static|final|abstract|sealed|non-sealed|default|synchronized|volatile|transient|native|strictfp)\s+)*", head).group()
        rest = head[len(mods):]
        found = re.match(r"(?:class|interface|enum|record|@interface)\s+(\w+)", rest)
        if found:
            return "type", found.group(1), mods, start + at
        before = rest.split("=")[0]
        found = re.search(r"(\w+)\s*\(", before)
        if found and found.group(1) not in KEYWORDS:
            # without a type before it: a constructor, or a constant of an enum, which has no modifiers
            typed = re.search(r"[\w>\]]\s*$", before[:found.start()]) or stack and found.group(1) == stack[-1]
            return "method", found.group(1) if typed else "", mods, start + at
        if "=" not in rest and "(" not in rest and stack and re.fullmatch(r"\w+\s*", rest) and rest.strip() == stack[-1]:
            return "method", rest.strip(), mods, start + at  # compact constructor of a record
        found = re.search(r"(?<=[\w>\]\s])(?<!,)(?<!, )\s(\w+)$", before.strip())
        return "field", found.group(1) if found else "", mods, start + at


class Tree:
    def __init__(self, rooms):
        self.rooms = rooms
        self.main = {s.name: s for s in map(Source, sorted((HOME / MAIN / "dev/rpcx").glob("*.java"))) if s.name != "package-info"}
        self.internal = {s.name: s for s in map(Source, sorted((HOME / MAIN / "dev/rpcx").rglob("*.java")))
                         if s.package != FLAT and s.name != "package-info"}
        self.tests = [Source(p) for p in sorted((HOME / TEST).rglob("*.java"))]
        self.others = [Source(p) for folder in OTHERS for p in sorted((HOME / folder).rglob("*.java"))]
        self.room = {n: r for n, r in (ROOM | MADE).items() if n in self.main}
        for missing in sorted(set(self.main) - set(self.room)):
            sys.exit(f"move: {missing} stands in no room (expected: a line of TABLE)")
        # what has been moved before has its package already
        self.home = {n: FLAT for n in self.main} | {n: s.package for n, s in self.internal.items() if s.package.startswith("dev.rpcx.internal")}
        self.goes = {n: PACKAGE[r] if r in rooms else FLAT for n, r in self.room.items()}
        self.goes |= {n: p for n, p in self.home.items() if n not in self.goes}
        self.known = set(self.goes)
        self.supers = {n: set(re.findall(r"[A-Z]\w*", " ".join(re.findall(r"\b(?:extends|implements|permits)\s+([^{]+)", s.body)))) & self.known
                       for n, s in (self.main | self.internal).items()}

    # ---- order

    def upward(self):
        level = {r: i for i, r in enumerate(ORDER)}
        for n, s in self.main.items():
            for other in sorted(s.names(set(self.room), with_javadoc=False)):
                a, b = self.room[n], self.room[other]
                if level[b] > level[a] or (a, b) in FORBIDDEN:
                    lines = [i + 1 for i, line in enumerate(s.body.split("\n")) if re.search(rf"(?<![\w.]){other}\b", line)]
                    yield a, b, n, other, lines

    # ---- tests

    def test_package(self, source):
        """A test goes to the room of the class it is named after, or of which alone it names classes that are not public; others stay."""
        if source.package != FLAT or not source.name.endswith("Test"):
            return source.package
        base = re.sub(r"(Alone|Socket|Errors|Shares|Steps|Strangers|Trial|Memory|Looks)?Test$", "", source.name)
        if base in self.goes:
            return self.goes[base]
        rooms = {self.goes[x] for x in source.names(self.known)} - {FLAT}
        return rooms.pop() if len(rooms) == 1 else FLAT

    # ---- visibility

    def widened(self, files, target):
        """For each class the members that files of other packages may use, by name."""
        wanted = defaultdict(set)
        all_main = self.main | {n: s for n, s in self.internal.items() if n in self.known}
        declared = {n: s.declarations() for n, s in all_main.items()}
        users = {}
        for f in files:
            named = f.names(self.known, with_javadoc=False)
            used = set(re.findall(r"(?:\.|::)\s*(\w+)", f.body)) | {"new " + x for x in re.findall(r"\bnew\s+(?:\w+\.)*(\w+)", f.body)}
            users[f] = (named, used)
        beside = {n: s.names(self.known, with_javadoc=False) for n, s in all_main.items()}
        owners = Counter(name for n in all_main for name in {d[2] for d in declared[n] if d[0]})
        for f, (named, used) in users.items():
            # a file that names a class may hold objects of others by way of it: of those a member counts whose name no other class has
            near = named | {n for x in named for n in beside.get(x, ())}
            for n in near & set(all_main):
                if target(f) == self.goes[n] or n == f.name:
                    continue
                if n in named:
                    wanted[n].add(n)
                is_below = n in self.supers.get(f.name, ())
                for path, kind, name, mods, at in declared[n]:
                    if not path or re.search(r"\b(public|private)\b", mods) or n not in named and owners[name] > 1:
                        continue
                    constructor = kind == "method" and name == path[-1]
                    if constructor and ("new " + name in used or is_below) or not constructor and (name in used or is_below and re.search(rf"\b{name}\b", f.body)):
                        wanted[n].add(".".join(path[1:] + (name,)) if len(path) > 1 else name)
        # what overrides a member that is widened is widened too
        own = {n: {name for path, kind, name, mods, at in declared[n]
                   if path == (n,) and kind == "method" and not re.search(r"\b(public|private)\b", mods)} for n in all_main}
        changed = True
        while changed:
            changed = False
            for n in all_main:
                for up in self.supers[n] & set(all_main):
                    more = {m for m in wanted[up] if m != up} & own[n] - wanted[n]
                    if more:
                        wanted[n] |= more
                        changed = True
        return wanted, declared

    # ---- what is written

    def rewritten(self, source, target, wanted, declared):
        text = source.text
        edits = []
        for path, kind, name, mods, at in declared.get(source.name, []) if source.name in wanted else []:
            key = name if len(path) <= 1 else ".".join(path[1:] + (name,))
            top = not path and name == source.name
            if re.search(r"\b(public|private)\b", mods):
                continue
            if top and source.name in wanted or path and (key in wanted[source.name] or kind == "method" and name == path[-1] and self._is_record(source, name)):
                if path and self._is_interface(source, path):
                    continue  # public as it is
                edits.append((at, re.match(r"protected\s+", mods)))
        for at, protected in sorted(edits, reverse=True, key=lambda e: e[0]):
            rest = text[at:]
            if protected:
                rest = rest[protected.end():]
            before = re.sub(r"@Nullable\s*\n\s*$", "", text[:at])
            text = (before + "public @Nullable " if before != text[:at] else text[:at] + "public ") + rest
        text = re.sub(r"^package [\w.]+;", f"package {target};", text, count=1, flags=re.M)
        text = re.sub(r"\bdev\.rpcx\.([A-Z]\w*)\b", lambda m: f"{self.goes.get(m.group(1), FLAT)}.{m.group(1)}", text)
        # imports: those of the own package go, those of what stands elsewhere come
        needed = {f"{self.goes[n]}.{n}" for n in source.names(self.known) if self.goes[n] != target}
        have = set(re.findall(r"^import ([\w.]+);", text, re.M))
        own = {i for i in have if i.rpartition(".")[0] == target}
        for i in own:
            text = re.sub(rf"^import {re.escape(i)};\n", "", text, flags=re.M)
        missing = sorted(needed - have)
        if missing:
            block = "".join(f"import {i};\n" for i in missing)
            at = re.search(r"^import (?!static)", text, re.M)
            if at:
                text = text[:at.start()] + block + text[at.start():]
            else:
                text = re.sub(r"^(package [\w.]+;\n)", lambda m: m.group(1) + "\n" + block, text, count=1, flags=re.M)
        return text, missing

    @staticmethod
    def _is_interface(source, path):
        return bool(re.search(rf"\b(?:interface|@interface)\s+{path[-1]}\b", source.body))

    @staticmethod
    def _is_record(source, name):
        return bool(re.search(rf"\brecord\s+{name}\b", source.body))

    def run(self, apply, anyway):
        ups = [u for u in self.upward() if (u[0] in self.rooms or u[1] in self.rooms) and f"{u[2]} -> {u[3]}" not in NAMED]
        if ups and apply and not anyway:
            sys.exit(f"move: {len(ups)} references go upwards (expected: none; --edges lists them)")
        targets = {s: self.goes[s.name] for s in (self.main | {n: s for n, s in self.internal.items() if n in self.known}).values()}
        targets |= {s: s.package for s in self.internal.values() if s not in targets}
        targets |= {s: self.test_package(s) for s in self.tests}
        for s in self.others:
            # a race stands in the package of the class that it races; others use what is public
            rooms = {self.goes[x] for x in s.names(self.known)} - {FLAT}
            targets[s] = rooms.pop() if s.package == FLAT and len(rooms) == 1 else s.package
        wanted, declared = self.widened(list(targets), targets.get)
        count = Counter()
        for s, target in targets.items():
            # what users see is never widened: what is used of it from inside needs a cut, or stays with tests of its package
            inside = s.name in self.known and "/main/" in str(s.path) and target != FLAT and "internal" in target
            text, missing = self.rewritten(s, target, wanted if inside else {}, declared)
            moved = target != s.package
            if text == s.text and not moved:
                continue
            where = Path(str(s.path).replace("/" + s.package.replace(".", "/") + "/", "/" + target.replace(".", "/") + "/"))
            kind = "main" if "/main/" in str(s.path) and str(s.path).startswith(str(HOME / MAIN)) else "test" if str(s.path).startswith(str(HOME / TEST)) else "other"
            count[kind, "moved" if moved else "edited"] += 1
            print(f"{'mv  ' if moved else 'edit'} {s.path.relative_to(HOME)}" + (f" -> {target}" if moved else "") + (f"  +{len(missing)} imports" if missing else ""))
            if apply:
                if moved:
                    where.parent.mkdir(parents=True, exist_ok=True)
                    subprocess.run(["git", "mv", str(s.path), str(where)], cwd=HOME, check=True)
                where.write_text(text, encoding="utf-8")
        for n in sorted(wanted):
            if n in self.main and self.room[n] in self.rooms:
                members = sorted(m for m in wanted[n] if m != n)
                word = "wide" if self.goes[n] != FLAT else "open"
                if word == "open" and not members:
                    continue
                print(f"{word} {n}" + (f": {len(members)} of {sum(1 for d in declared[n] if d[0] and not re.search('public|private', d[3]))}: {' '.join(members)}" if members else ""))
        for room in self.rooms:
            info = HOME / MAIN / PACKAGE[room].replace(".", "/") / "package-info.java"
            if PACKAGE[room] != FLAT and not info.exists():
                print(f"new  {info.relative_to(HOME)} (with @NullMarked: without it NullAway looks at nothing there)")
                if apply:
                    info.parent.mkdir(parents=True, exist_ok=True)
                    info.write_text(f"/** {INFO[room]} */\n@NullMarked\npackage {PACKAGE[room]};\n\nimport org.jspecify.annotations.NullMarked;\n", encoding="utf-8")
                    subprocess.run(["git", "add", str(info)], cwd=HOME, check=True)
        print("hand build/mutation.sh rpcx/rpcx/pom.xml(LeakCollector) rpcx/rpcx/src/test/resources(META-INF/services, dev/rpcx/corpus) docs")
        print(dict(sorted((" ".join(k), v) for k, v in count.items())), "upward:", len(ups))


def fix(log):
    """javac's complaints, one kind after the other: it says the file, the line and the name."""
    text = Path(log).read_text(errors="replace")
    tree = Tree(ORDER)
    sources = {s.name: s for s in (tree.main | tree.internal).values()}
    edits = defaultdict(set)
    found = re.findall(r"(\w+)(?:\([^)\n]*\))? is not public in ([\w.]+); cannot be accessed", text)
    found += re.findall(r"(\w+)\([^)\n]*\) in ([\w.]+) cannot (?:override|implement)[^\n]*\n\s*attempting to assign weaker access", text)
    for name, owner in found:
        # of a class its package is said; of a member of a nested class that and the classes around it
        around = [part for part in owner.split(".") if part in sources] or [name]
        edits[around[0]].add(name)
    for owner, names in sorted(edits.items()):
        s = sources.get(owner)
        if s is None:
            print(f"hand {owner}: {' '.join(sorted(names))}")
            continue
        new = s.text
        for path, kind, name, mods, at in sorted(s.declarations(), key=lambda d: -d[4]):
            if name in names and not re.search(r"\b(public|private)\b", mods):
                new = new[:at] + "public " + re.sub(r"^protected\s+", "", new[at:])
        s.path.write_text(new, encoding="utf-8")
        print(f"wide {owner}: {' '.join(sorted(names))}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--edges", action="store_true")
    parser.add_argument("--apply", action="store_true")
    parser.add_argument("--anyway", action="store_true")
    parser.add_argument("--room", action="append", choices=ORDER)
    parser.add_argument("--fix", metavar="LOG")
    options = parser.parse_args()
    if options.fix:
        return fix(options.fix)
    tree = Tree(options.room or ORDER)
    if options.table:
        for n, s in tree.main.items():
            print(f"{n} {s.text.count(chr(10))} {tree.room[n]}")
    elif options.edges:
        for a, b, n, other, lines in sorted(tree.upward(), key=lambda u: (ORDER.index(u[0]), ORDER.index(u[1]), u[2])):
            print(f"{a} -> {b}: {n} -> {other}, lines {', '.join(map(str, lines[:8]))}")
    else:
        tree.run(options.apply, options.anyway)
    return None


if __name__ == "__main__":
    sys.exit(main())
