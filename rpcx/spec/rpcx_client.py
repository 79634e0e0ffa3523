#!/usr/bin/env python3
"""A client of RPCX's native and classic wire, written from wire.md alone, with the standard library only.

One thread, blocking; many calls may be under way: start() returns an id, finish() waits for it.

It shows the bytes, and trusts its server. It leaves out what a client between strangers needs: the limits of frames and
of their fields, reading while it writes, signs of life, one GOAWAY for one and no call behind it.
"""
import random
import socket
import struct
import sys

SETTINGS, DICTIONARY, REQUEST, NOTICE, PART, REPLY, ERROR, CANCEL = 1, 2, 3, 4, 5, 6, 7, 8
ITEM, END, CREDIT, GOAWAY, PING, PONG = 9, 10, 11, 12, 13, 14
MORE, NAMED, METADATA, TIME = 0x10, 0x20, 0x40, 0x80
MAX_PAYLOAD = 16384 - 5


class RpcxError(Exception):
    """details are triples: name, message, whether the detail is the exception that the method declares."""

    def __init__(self, code, text, executed, details=(), metadata=()):
        super().__init__(f"{code}: {text}")
        self.code, self.text, self.executed, self.details = code, text, executed, list(details)
        self.metadata = dict(metadata)


# ---- Protobuf, as far as it is needed

def varint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def number(field, value):
    return varint(field << 3) + varint(value)


def chunk(field, data):
    return varint(field << 3 | 2) + varint(len(data)) + data


def text(field, value):
    return chunk(field, value.encode())


def fields(data):
    """Yields field number and value of each field of a message."""
    at = 0
    while at < len(data):
        tag, at = read_varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = read_varint(data, at)
        elif kind == 1:
            value, at = data[at:at + 8], at + 8
        elif kind == 2:
            size, at = read_varint(data, at)
            value, at = data[at:at + size], at + size
        elif kind == 5:
            value, at = data[at:at + 4], at + 4
        else:
            raise ValueError(f"wire type {kind}")
        yield tag >> 3, value


def entries(data):
    """Names and values of metadata."""
    found = [dict(fields(entry)) for _, entry in fields(data)]
    return {bytes(entry.get(1, b"")).decode(): bytes(entry.get(2, b"")).decode() for entry in found}


def error(data):
    found, details = dict(fields(data)), []
    for field, value in fields(data):
        if field == 4:
            detail = dict(fields(value))
            details.append((bytes(detail.get(1, b"")).decode(), bytes(detail.get(2, b"")), detail.get(3, 0) != 0))
    said = bytes(found.get(2, b"")).decode()
    return RpcxError(found.get(1, 0), said, found.get(3, 0), details, entries(found.get(5, b"")))


class Connection:
    def __init__(self, host, port):
        self.socket = socket.create_connection((host, port), timeout=20)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def read(self, size):
        data = bytearray()
        while len(data) < size:
            got = self.socket.recv(size - len(data))
            if not got:
                raise EOFError("the server closed")
            data += got
        return bytes(data)

    def close(self):
        """The end of this side's stream first: a socket that is closed with bytes unread is reset."""
        try:
            self.socket.shutdown(socket.SHUT_WR)
            self.socket.settimeout(1)
            while self.socket.recv(65536):
                pass
        except OSError:
            pass
        self.socket.close()


class Native(Connection):
    def __init__(self, host, port):
        super().__init__(host, port)
        self.methods, self.complete = {}, False
        self.generations, self.free, self.top = {}, [], 0
        self.parts, self.done, self.items, self.credit, self.pongs, self.told = {}, {}, {}, {}, 0, {}
        self.socket.sendall(b"RPCX\x01\x00\x00\x00" + self.frame(SETTINGS, 0, number(1, 4 << 20) + number(4, 1)))
        self.greeted = False

    @staticmethod
    def frame(head, call, payload=b""):
        return varint(5 + len(payload)) + struct.pack(">BI", head, call) + payload

    def message(self, head, call, payload):
        """A message in as many frames as it takes."""
        out, first = bytearray(), True
        while first or payload:
            now, payload = payload[:MAX_PAYLOAD], payload[MAX_PAYLOAD:]
            out += self.frame((head if first else PART) | (MORE if payload else 0), call, now)
            first = False
        self.socket.sendall(out)

    def start(self, service, method, body, micros=None, metadata=None, kind=REQUEST):
        slot = self.free.pop() if self.free else self.top
        self.top = max(self.top, slot + 1)
        generation = self.generations.get(slot, 0) % 0xFFFF + 1
        self.generations[slot] = generation
        call = generation << 16 | slot
        known = self.methods.get((service, method)) if self.complete else None
        if known:
            head, prelude = kind, varint(known)
        else:
            names = [name.encode() for name in (service, method)]
            head, prelude = kind | NAMED, b"".join(bytes([len(name)]) + name for name in names)
        if micros is not None:
            head, prelude = head | TIME, prelude + varint(micros)
        if metadata:
            pairs = b"".join(chunk(1, text(1, k) + text(2, v)) for k, v in metadata.items())
            head, prelude = head | METADATA, prelude + varint(len(pairs)) + pairs
        self.items[call] = []
        self.message(head, call, prelude + body)
        return call

    def finish(self, call):
        while call not in self.done:
            self.step()
        result = self.done.pop(call)
        self.free.append(call & 0xFFFF)
        if isinstance(result, RpcxError):
            raise result
        return result

    def call(self, *arguments, **options):
        return self.finish(self.start(*arguments, **options))

    def step(self):
        """Takes one frame."""
        if not self.greeted:
            preface = self.read(8)
            assert preface[:4] == b"RPCX" and 1 <= preface[4] <= 8, preface
            self.greeted = True
        length = shift = 0
        while True:
            byte = self.read(1)[0]
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        head, call = struct.unpack(">BI", self.read(5))
        payload = self.read(length - 5)
        kind, more = head & 0x0F, bool(head & MORE)
        if kind == DICTIONARY:
            for _, entry in fields(payload):
                found = dict(fields(entry))
                self.methods[bytes(found[2]).decode(), bytes(found[3]).decode()] = found[1]
            self.complete = not more
        elif kind in (REPLY, ITEM):
            if kind == REPLY and head & METADATA:
                size, at = read_varint(payload, 0)
                self.told, payload = entries(payload[at:at + size]), payload[at + size:]
            self.parts[call] = (kind, payload)
            if not more:
                self.whole(call)
        elif kind == PART and call in self.parts:
            first, begun = self.parts[call]
            self.parts[call] = (first, begun + payload)
            if not more:
                self.whole(call)
        elif kind == ERROR:
            self.parts.pop(call, None)
            if call == 0:
                raise error(payload)
            self.done[call] = error(payload)
        elif kind == CREDIT:
            self.credit[call] = self.credit.get(call, 0) + read_varint(payload, 0)[0]
        elif kind == PING:
            self.socket.sendall(self.frame(PONG, call))
        elif kind == PONG:
            self.pongs += 1
        elif kind == GOAWAY:
            self.socket.sendall(self.frame(GOAWAY, 0))

    def whole(self, call):
        kind, message = self.parts.pop(call)
        if kind == ITEM:
            self.items[call].append(message)
        else:
            self.done[call] = message


class Classic(Connection):
    def start(self, service, method, *values):
        call = random.getrandbits(63)
        parameters = b"".join(chunk(4, text(1, "any") + chunk(2, value)) for value in values)
        request = number(1, call) + text(2, service) + text(3, method) + parameters
        self.socket.sendall(struct.pack(">I", len(request)) + request)
        return call

    def reply(self):
        (size,) = struct.unpack(">I", self.read(4))
        found = dict(fields(self.read(size)))
        return found[1], error(found[3]) if 3 in found else bytes(found.get(2, b""))


# ---- what a server that publishes the tests' service "spec" has to do

def check(host, port):
    checks = 0

    def expect(what, got, wanted):
        nonlocal checks
        if got != wanted:
            raise AssertionError(f"{what}: {str(got)[:200]} (expected: {str(wanted)[:200]})")
        checks += 1

    def refused(what, code, executed, action, details=()):
        try:
            action()
        except RpcxError as e:
            expect(what, (e.code, e.executed, e.details), (code, executed, list(details)))
            native.told = e.metadata
            return e.text
        raise AssertionError(f"{what}: no error")

    native = Native(host, port)
    hello = text(1, "HelloWorld")
    expect("by name", native.call("spec", "echo", hello), hello)
    while not native.complete:
        native.step()
    expect("in the dictionary", ("spec", "echo") in native.methods, True)
    expect("by number", native.call("spec", "echo", hello), hello)
    for size in (0, 1, 127, 16_000, 16_379, 16_384, 100_000, 1_000_000):
        body = text(1, "x" * size) if size else b""
        expect(f"{size} characters", native.call("spec", "echo", body), body)
    calls = [(native.start("spec", "echo", text(1, str(i))), text(1, str(i))) for i in range(200)]
    for call, wanted in reversed(calls):
        expect("one of many", native.finish(call), wanted)
    small = native.start("spec", "echo", text(1, "y" * 500_000)), native.start("spec", "echo", hello)
    expect("a small one beside a large one", native.finish(small[1]), hello)
    expect("the large one", native.finish(small[0]), text(1, "y" * 500_000))
    expect("two parameters", native.call("spec", "add", number(1, 3) + number(2, 4)), number(1, 7))
    expect("metadata", native.call("spec", "metadata", text(1, "who"), metadata={"who": "python"}), text(1, "python"))
    expect("no metadata of a reply", native.told, {})
    expect("beside metadata", native.call("spec", "tell", hello), hello)
    expect("metadata of a reply", native.told, {"told": "HelloWorld"})
    large = text(1, "z" * 100_000)
    expect("a reply in parts beside metadata", native.call("spec", "tell", large), large)
    expect("metadata of a reply in parts", native.told, {"told": "z" * 100})
    refused("an error beside metadata", 5, 2, lambda: native.call("spec", "tell", b""))
    expect("metadata of an error", native.told, {"told": ""})
    left = dict(fields(native.call("spec", "remaining", b"", micros=2_000_000)))[1]
    expect("time shrinks", 0 < left <= 2_000_000, True)
    expect("notice", native.call("spec", "echo", hello, kind=NOTICE), b"")
    one = refused("unknown service", 4, 1, lambda: native.call("nobody", "echo", hello))
    two = refused("unknown method", 4, 1, lambda: native.call("spec", "nothing", hello))
    expect("the two look alike", one, two)
    expect("handler's text", refused("handler", 6, 2, lambda: native.call("spec", "fail", hello)), "HelloWorld")
    refused("a declared exception", 6, 2, lambda: native.call("spec", "withdraw", number(1, 300)),
            [("NotEnough", number(1, 300), True)])
    refused("a detail", 5, 2, lambda: native.call("spec", "withdraw", b""), [("BadField", text(1, "cents"), False)])
    refused("unreadable", 5, 1, lambda: native.call("spec", "echo", b"\x0a\x64"))
    refused("no time", 2, 1, lambda: native.call("spec", "echo", hello, micros=0))
    refused("a notice of a stream", 5, 1, lambda: native.call("spec", "count", number(1, 5), kind=NOTICE))
    blocked = native.start("spec", "block", b"")
    native.socket.sendall(native.frame(CANCEL, blocked))
    try:
        native.finish(blocked)
        raise AssertionError("cancel: no error")
    except RpcxError as e:
        expect("cancel", e.code, 1)
    native.socket.sendall(native.frame(PING, 42) + native.frame(0, 99, b"of a later version"))
    while not native.pongs:
        native.step()
    expect("still there", native.call("spec", "echo", hello), hello)
    counting = native.start("spec", "count", number(1, 5))
    native.socket.sendall(native.frame(CREDIT, counting, varint(2)))
    while len(native.items[counting]) < 2:
        native.step()
    native.call("spec", "echo", hello)
    expect("no item without credit", len(native.items[counting]), 2)
    native.socket.sendall(native.frame(CREDIT, counting, varint(100)))
    expect("the stream's end", native.finish(counting), b"")
    expect("its items", native.items[counting], [text(1, f"item {i}") for i in range(5)])
    total, sent = native.start("spec", "total", b""), 0
    while sent < 10:
        while native.credit.get(total, 0) <= sent:
            native.step()
        sent += 1
        native.socket.sendall(native.frame(ITEM, total, number(1, sent)))
    native.socket.sendall(native.frame(END, total))
    expect("a stream to the server", native.finish(total), number(1, 55))
    native.close()

    classic = Classic(host, port)
    first, second = classic.start("spec", "echo", hello), classic.start("spec", "nothing", hello)
    replies = dict((classic.reply(), classic.reply()))
    expect("classic", replies[first], hello)
    expect("classic error", replies[second].code, 4)
    classic.start("spec", "withdraw", number(1, 300))
    expect("classic details", classic.reply()[1].details, [("NotEnough", number(1, 300), True)])
    third = classic.start("spec", "add", number(1, 3), number(1, 4))
    expect("classic with two parameters", classic.reply(), (third, number(1, 7)))
    classic.close()
    return checks


if __name__ == "__main__":
    print(f"ok, {check(sys.argv[1], int(sys.argv[2]))} checks")
