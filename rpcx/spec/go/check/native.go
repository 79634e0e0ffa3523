package main

import (
	"fmt"
	"math"
	"time"

	wire "rpcx.dev/spec/client"
)

// nativeChecks speak frames, not calls. Most of them break a rule.
var nativeChecks = append(append(append(append(append(append([]check{},
	prefaceChecks...), frameChecks...), requestChecks...), messageChecks...), streamChecks...), closingChecks...)

var prefaceChecks = []check{
	{"preface: higher version and features", "Both speak the lower version, and use a feature that both have.", func(t *T) {
		p := plain(t)
		defer p.close()
		p.send([]byte{0x52, 0x50, 0x43, 0x58, wire.MaxVersion, 0xff, 0xff, 0xff})
		p.frames(wire.Frame{Type: wire.SETTINGS})
		p.greeted()
		p.settled()
	}},
	{"preface: the server waits for it", "A server answers after it has the client's preface.", func(t *T) {
		p := plain(t)
		defer p.close()
		p.send(wire.Preface[:7])
		_ = p.socket.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		_, err := p.in.Peek(1)
		holds(t, "answer after seven bytes of a preface", err, "nothing yet", err != nil)
		p.send(wire.Preface[7:])
		p.frames(wire.Frame{Type: wire.SETTINGS})
		p.greeted()
		p.settled()
	}},
	{"preface: all in one packet", "its preface, settings and first requests may go out in one packet", func(t *T) {
		p := plain(t)
		defer p.close()
		content := append([]byte{}, wire.Preface...)
		content = wire.AppendFrame(content, wire.Frame{Type: wire.SETTINGS})
		for i := uint16(0); i < 100; i++ {
			content = wire.AppendFrame(content, p.named(id(i, 1), "echo", text(fmt.Sprint("early ", i))))
		}
		p.send(content)
		p.greeted()
		p.collect(100, func(i uint32) []byte { return text(fmt.Sprint("early ", i)) })
		p.settled()
	}},
	{"preface: byte by byte", "The network may cut and join frames at every byte.", func(t *T) {
		p := plain(t)
		defer p.close()
		content := append([]byte{}, wire.Preface...)
		content = wire.AppendFrame(content, wire.Frame{Type: wire.SETTINGS, Payload: wire.Settings{MaxMessageBytes: 1 << 20, DefaultMicros: 5e6}.Payload()})
		content = wire.AppendFrame(content, p.named(id(0, 1), "echo", text("slow")))
		for _, part := range split(p.named(id(1, 1), "echo", text(long(300))), 50, 100) {
			content = wire.AppendFrame(content, part)
		}
		for i := range content {
			p.send(content[i : i+1])
		}
		p.greeted()
		p.collect(2, func(i uint32) []byte {
			if i == 0 {
				return text("slow")
			}
			return text(long(300))
		})
		p.settled()
	}},
	{"preface: another word, or a version that is none", "Any other version, and other bytes than \"RPCX\", end the connection without a word.", func(t *T) {
		for _, begin := range [][]byte{{0x52, 0x50, 0x43, 0x58, 0, 0, 0, 0}, {0x52, 0x50, 0x43, 0x58, 9, 0, 0, 0}, []byte("RPCX /ab"), []byte("RPCXA /a"), {0x52, 0x50, 0x43, 0x58, 0xff, 0, 0, 0}, {0x52, 0x50, 0x43, 0x59, 1, 0, 0, 0}, {0x52, 0x52, 0x52, 0x52, 0x52, 0x52, 0x52, 0x52}} {
			t.one(func() {
				t.step("preface % x", begin)
				p := plain(t)
				p.send(begin)
				p.closesSilently()
			})
		}
	}},
	{"preface: no SETTINGS", "a side that is content with them need not send SETTINGS", func(t *T) {
		p := plain(t)
		defer p.close()
		p.send(wire.Preface)
		p.frames(p.named(id(0, 1), "echo", text("x")))
		p.greeted()
		p.replies(id(0, 1), text("x"))
		p.settled()
	}},
	{"settings: twice", "A second SETTINGS ends the connection.", func(t *T) {
		p := native(t)
		p.frames(wire.Frame{Type: wire.SETTINGS})
		p.ends(wire.Protocol)
	}},
	{"settings: that are none", "A varint that is longer or cut off ends the connection. So does a payload that is not the Protobuf message that it must be, in SETTINGS, DICTIONARY, SCHEMA, ERROR and metadata: a length that leads beyond the message, wire types 3, 4, 6 and 7, field number 0, a tag (field number and wire type) of more than 32 bits.", func(t *T) {
		for _, payload := range [][]byte{{0x08}, {0xff}, {0x0a, 0x05, 0x01}, {0x18, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01}, {0x00, 0x00}, {0x88, 0x80, 0x80, 0x80, 0x80, 0x01, 0x01}} {
			t.one(func() {
				t.step("SETTINGS % x", payload)
				p := plain(t)
				p.send(wire.Preface)
				p.frames(wire.Frame{Type: wire.SETTINGS, Payload: payload})
				p.greeted()
				p.ends(wire.Protocol)
			})
		}
	}},
	{"settings: 0, the largest, a field twice", "Of two values of one field, the later counts. ... A value of 0 counts as unsaid. ... A number above what a side can use counts as the largest it can use", func(t *T) {
		for _, c := range []struct {
			payload     []byte
			least, most int64
		}{
			{[]byte{0x08, 0, 0x10, 0, 0x18, 0}, 1, 10000000},
			{wire.AppendNumber(wire.AppendNumber(wire.AppendNumber(nil, 1, math.MaxUint64), 2, math.MaxUint64), 3, math.MaxUint64), 10000001, 1 << 50},
			{wire.AppendNumber(wire.AppendNumber(nil, 3, 1), 3, 3000000), 1, 3000000},
			{append([]byte{0x18}, 0xc0, 0x84, 0xbd, 0x80, 0x00), 1, 1000000},
		} {
			t.one(func() {
				t.step("SETTINGS % x", c.payload)
				p := plain(t)
				p.send(wire.Preface)
				p.frames(wire.Frame{Type: wire.SETTINGS, Payload: c.payload})
				p.greeted()
				p.remains(0, id(0, 1), nil, c.least, c.most)
				p.settled()
				p.close()
			})
		}
	}},
	{"settings: unknown fields", "In these messages unknown fields are passed over", func(t *T) {
		p := plain(t)
		defer p.close()
		payload := wire.AppendBytes(nil, 15, "unknown")
		payload = wire.AppendNumber(payload, 3, 2000000)
		payload = wire.AppendNumber(payload, 200, math.MaxUint64)
		payload = append(payload, 0x59, 1, 2, 3, 4, 5, 6, 7, 8, 0x65, 1, 2, 3, 4) // fields 11 (64 bits) and 12 (32 bits)
		p.send(wire.Preface)
		p.frames(wire.Frame{Type: wire.SETTINGS, Payload: payload})
		p.greeted()
		p.remains(0, id(0, 1), nil, 1, 2000000)
		p.settled()
	}},
	{"settings: the server's", "uint32 max_calls = 2; // server: calls under way at once on this connection; 4096 unless said, never more", func(t *T) {
		p := native(t)
		defer p.close()
		holds(t, "max_calls", p.server.MaxCalls, "1 to 4096", p.server.MaxCalls >= 1 && p.server.MaxCalls <= 4096)
		holds(t, "max_message_bytes", p.server.MaxMessageBytes, "above 0", p.server.MaxMessageBytes > 0)
	}},
	{"dictionary: methods and numbers", "Methods are numbered from 1. ... schema is a hash of the members of all messages of the method; 0 says nothing ... A sender always sets bit 31, so that no shape is 0, and leaves bit 28 at 0. ... Bit 30 says that the method takes a stream, bit 29 that it brings one.", func(t *T) {
		p := native(t)
		defer p.close()
		seen := map[uint32]bool{}
		for m, entry := range p.methods {
			holds(t, fmt.Sprint("number of ", m), entry.Number, "above 0, given once", entry.Number > 0 && !seen[entry.Number])
			seen[entry.Number] = true
		}
		for i := 1; i <= len(seen); i++ {
			holds(t, fmt.Sprint("number ", i), seen[uint32(i)], "in the dictionary", seen[uint32(i)])
		}
		for _, name := range []string{"echo", "add", "metadata", "remaining", "fail", "count", "total", "block"} {
			holds(t, "method "+name, p.methods[method(name)], "in the dictionary", p.methods[method(name)].Number > 0)
		}
		for name, shape := range map[string]uint32{
			"echo": 0x84000004, "add": 0x81000011, "metadata": 0x84000004, "remaining": 0x81000000, "fail": 0x84000004,
			"count": 0xa4000001, "total": 0xc1000001, "block": 0x80000000,
		} {
			same(t, "shape of "+name, fmt.Sprintf("%08x", p.methods[method(name)].Shape), fmt.Sprintf("%08x", shape))
		}
		p.frames(p.numbered(0, id(0, 1), "echo", text("by number")))
		p.replies(id(0, 1), text("by number"))
		same(t, "schema of fail, as that of echo", p.methods[method("fail")].Schema, p.methods[method("echo")].Schema)
	}},
	{"schema: hashes", "The hash is FNV-1a with 64 bits over this text in UTF-8: for each type its kind and {; for each of its members the number, a blank, the name, then a blank and the type if the type is not empty, and ;; then }.", func(t *T) {
		p := native(t)
		defer p.close()
		call := func(members ...wire.SchemaMember) wire.SchemaType { return wire.SchemaType{Kind: "call", Members: members} }
		member := func(number uint32, name, kind string) wire.SchemaMember {
			return wire.SchemaMember{Number: number, Name: name, Type: kind}
		}
		value := func(kind string) wire.SchemaType { return call(member(1, "value", kind)) }
		for name, types := range map[string][]wire.SchemaType{
			"echo":      {call(member(1, "text", "string")), value("string")},
			"add":       {call(member(1, "a", "int32"), member(2, "b", "int32")), value("int32")},
			"remaining": {call(), value("int64")},
			"count":     {call(member(1, "items", "int32")), value("string")},
			"total":     {value("int32"), value("int32")},
			"block":     {call(), call()},
		} {
			same(t, "schema of "+name, p.methods[method(name)].Schema, wire.SchemaHash(types))
		}
	}},
	{"schema: a question and its answer", "A second SCHEMA of a client ends the connection. ... The server answers with one SCHEMA or more, of which all but the last have MORE. It tells the types of each method of the question that has a hash. A number that is not above all numbers before it, and one without a method or a hash, is passed over.", func(t *T) {
		p := native(t)
		var numbers []uint32
		for number := 0; number < len(p.methods)+2; number++ {
			numbers = append(numbers, uint32(number), 1)
		}
		p.frames(wire.Frame{Type: wire.SCHEMA, Flags: wire.MORE, ID: 7, Payload: wire.SchemaQuestion(numbers...)})
		told := map[uint32][]wire.SchemaType{}
		for more := true; more; {
			frame := p.frame()
			t.is(frame, wire.SCHEMA, 0)
			if err := wire.ReadSchema(frame.Payload, told); err != nil {
				t.differ(err.Error(), "types that can be read")
			}
			more = frame.Flags&wire.MORE != 0
		}
		same(t, "methods that are told", len(told), len(p.methods))
		for m, entry := range p.methods {
			same(t, fmt.Sprint("hash of what is told of ", m), wire.SchemaHash(told[entry.Number]), entry.Schema)
		}
		p.settled()
		p.frames(wire.Frame{Type: wire.SCHEMA, Payload: wire.SchemaQuestion(1)})
		p.ends(wire.Protocol)
		t.step("nothing to tell")
		p = native(t)
		p.frames(wire.Frame{Type: wire.SCHEMA})
		frame := p.frame()
		t.is(frame, wire.SCHEMA, 0)
		same(t, "bytes of the answer", len(frame.Payload), 0)
		p.settled()
		p.close()
	}},
	{"schema: a question that is none", "A varint that is longer or cut off ends the connection. So does a payload that is not the Protobuf message that it must be, in SETTINGS, DICTIONARY, SCHEMA, ERROR and metadata", func(t *T) {
		for _, payload := range [][]byte{{0x08}, {0x0a, 0x05, 0x01}, {0x0a, 0x01, 0x80}, {0x0b}, {0x00, 0x00}} {
			t.one(func() {
				t.step("SCHEMA % x", payload)
				p := native(t)
				p.frames(wire.Frame{Type: wire.SCHEMA, Payload: payload})
				p.ends(wire.Protocol)
			})
		}
	}},
}

// collect reads one-frame replies of the slots 0 to calls in any order.
func (p *peer) collect(calls int, body func(slot uint32) []byte) {
	missing := map[uint32]bool{}
	for i := 0; i < calls; i++ {
		missing[uint32(i)] = true
	}
	for len(missing) > 0 {
		frame := p.frame()
		slot := frame.ID & 0xffff
		holds(p.t, "final frame", frame, "a REPLY of each call, once", frame.Type == wire.REPLY && missing[slot])
		delete(missing, slot)
		same(p.t, fmt.Sprint("reply of slot ", slot), string(frame.Payload), string(body(slot)))
	}
}

// remains asks how many microseconds a handler sees, and holds them against bounds.
func (p *peer) remains(flags byte, id uint32, prelude []byte, least, most int64) {
	p.frames(p.numbered(flags, id, "remaining", prelude))
	frame := p.frame()
	p.t.is(frame, wire.REPLY, id)
	fields, err := wire.ReadFields(frame.Payload)
	if err != nil || len(fields) != 1 {
		p.t.differ(frame.String(), "one number")
	}
	left := int64(fields[0].Number)
	holds(p.t, "microseconds left", left, fmt.Sprint(least, " to ", most), left >= least && left <= most)
}

var frameChecks = []check{
	{"frame: lengths that are none", "A length outside these bounds, or a length in more bytes than it takes, ends the connection as soon as it has been read.", func(t *T) {
		for _, length := range [][]byte{
			{0x00}, {0x01}, {0x02}, {0x03}, {0x04}, {0x81, 0x80, 0x01}, {0xff, 0xff, 0x7f},
			{0x80, 0x80, 0x80, 0x01}, {0xff, 0xff, 0xff, 0xff, 0x0f}, {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01},
			{0x85, 0x00}, {0x85, 0x80, 0x00}, {0x80, 0x00},
		} {
			t.one(func() {
				t.step("length % x", length)
				p := native(t)
				p.send(append(append([]byte{}, length...), 0x0d, 0, 0, 0, 0))
				p.ends(wire.Protocol)
			})
		}
	}},
	{"frame: a length that is none, at first", "All limits hold from the first byte.", func(t *T) {
		p := plain(t)
		p.send(append(append([]byte{}, wire.Preface...), 0x04))
		p.greeted()
		p.ends(wire.Protocol)
	}},
	{"frame: a length that is none, its bytes one by one", "A length outside these bounds, or a length in more bytes than it takes, ends the connection as soon as it has been read.", func(t *T) {
		p := native(t)
		for _, b := range []byte{0x81, 0x80, 0x01} {
			p.send([]byte{b})
		}
		p.ends(wire.Protocol)
	}},
	{"frame: the longest and the shortest", "how many bytes follow; 5 to 16384", func(t *T) {
		p := native(t)
		defer p.close()
		p.frames(wire.Frame{Type: wire.PING, ID: 7, Payload: make([]byte, wire.MaxPayload)}, wire.Frame{Type: wire.PING, ID: 0})
		for _, id := range []uint32{7, 0} {
			frame := p.frame()
			t.is(frame, wire.PONG, id)
			same(t, "bytes of PONG", len(frame.Payload), 0)
		}
		p.settled()
	}},
	{"frame: pings of any id", "13 | PING | both | any | any | | 14 | PONG | both | the ping's | empty", func(t *T) {
		p := native(t)
		defer p.close()
		for _, id := range []uint32{0, 1, 0x10000, math.MaxUint32} {
			p.frames(wire.Frame{Type: wire.PING, ID: id, Payload: []byte{1, 2, 3}})
			frame := p.frame()
			t.is(frame, wire.PONG, id)
			same(t, "bytes of PONG", len(frame.Payload), 0)
		}
		p.settled()
	}},
	{"frame: unknown types", "A frame of an unknown type (0) is passed over.", func(t *T) {
		p := native(t)
		defer p.close()
		for _, kind := range []wire.Type{0} {
			for _, flags := range []byte{0, wire.MORE, wire.NAMED, wire.METADATA, wire.TIME, 0xf0} {
				t.step("type %d flags %02x", kind, flags)
				p.frames(wire.Frame{Type: kind, Flags: flags}, wire.Frame{Type: kind, Flags: flags, ID: id(3, 1), Payload: make([]byte, wire.MaxPayload)})
			}
			p.settled()
		}
		t.step("within parts")
		parts := split(p.named(id(0, 1), "echo", text(long(200))), 30, 200)
		p.frames(parts[0], wire.Frame{Type: 0, ID: id(0, 1), Payload: []byte("x")}, wire.Frame{Type: 0, ID: id(0, 1)}, parts[1])
		p.replies(id(0, 1), text(long(200)))
		p.settled()
	}},
	{"frame: calls that are not under way", "A frame for a call that is not under way is passed over, whatever its payload.", func(t *T) {
		p := native(t)
		defer p.close()
		p.frames(p.named(id(0, 1), "echo", text("a")))
		p.replies(id(0, 1), text("a"))
		for _, id := range []uint32{id(0, 1), id(0, 2), id(9, 1), id(4096, 1), id(65535, 65535)} {
			for _, kind := range []wire.Type{wire.PART, wire.CANCEL, wire.ITEM, wire.END, wire.CREDIT} {
				for _, payload := range [][]byte{nil, {5}, {1, 2, 3}, make([]byte, wire.MaxPayload)} {
					for _, flags := range []byte{0, wire.MORE, 0xf0} {
						t.step("type %d id %08x flags %02x, %d bytes", kind, id, flags, len(payload))
						p.frames(wire.Frame{Type: kind, Flags: flags, ID: id, Payload: payload})
					}
				}
			}
		}
		p.settled()
		p.frames(p.named(id(0, 2), "echo", text("b")), p.named(id(9, 1), "echo", text("c")))
		p.collect2(map[uint32]string{id(0, 2): "b", id(9, 1): "c"})
	}},
	{"frame: types of the other side", "So is a frame of a type that only the receiving side may send: DICTIONARY, REPLY and ERROR with an id other than 0 at a server", func(t *T) {
		p := native(t)
		defer p.close()
		p.frames(p.numbered(0, id(0, 1), "block"))
		for _, kind := range []wire.Type{wire.DICTIONARY, wire.REPLY, wire.ERROR} {
			for _, k := range []uint32{id(0, 1), id(0, 2), id(7, 1), 0} {
				if kind == wire.ERROR && k == 0 {
					continue
				}
				for _, payload := range [][]byte{nil, {0xff}, {8, 1}} {
					t.step("type %d id %08x payload % x", kind, k, payload)
					p.frames(wire.Frame{Type: kind, ID: k, Payload: payload}, wire.Frame{Type: kind, Flags: wire.MORE, ID: k, Payload: payload})
				}
			}
			p.settled()
		}
		p.frames(wire.Frame{Type: wire.CANCEL, ID: id(0, 1)})
		p.cancelled(id(0, 1))
		p.frames(wire.Frame{Type: wire.PONG, ID: 5, Payload: []byte{1, 2}}, wire.Frame{Type: wire.PONG})
		p.settled()
	}},
	{"frame: flags and payloads that are not looked at", "A flag on a frame for which the table does not have it is ignored. ... The payload of a frame that the table calls empty is ignored. ... Payload bytes behind what a frame needs are ignored. ... A varint in a payload has at most 10 bytes, and may have more than it takes.", func(t *T) {
		p := native(t)
		defer p.close()
		p.frames(wire.Frame{Type: wire.PING, Flags: 0xf0, ID: 3, Payload: []byte{1}})
		t.is(p.frame(), wire.PONG, 3)
		p.frames(p.numbered(0, id(0, 1), "block"), wire.Frame{Type: wire.CANCEL, Flags: 0xf0, ID: id(0, 1), Payload: []byte{1, 2}})
		p.cancelled(id(0, 1))
		parts := split(p.named(id(0, 2), "echo", text("abc")), 12, 2)
		parts[1].Flags |= wire.NAMED | wire.METADATA | wire.TIME
		p.frames(parts...)
		p.replies(id(0, 2), text("abc"))
		t.step("CREDIT with bytes behind, in more bytes than it takes, and flags")
		p.frames(p.numbered(0, id(0, 3), "count", number(3)),
			wire.Frame{Type: wire.CREDIT, ID: id(0, 3), Payload: []byte{0x81, 0x00, 0xff, 0xff}},
			wire.Frame{Type: wire.CREDIT, Flags: 0xf0, ID: id(0, 3), Payload: []byte{2, 9}})
		for i := 0; i < 3; i++ {
			p.item(id(0, 3), text(fmt.Sprint("item ", i)))
		}
		p.replies(id(0, 3), nil)
		t.step("END with a payload and flags")
		p.frames(p.numbered(0, id(0, 4), "total"), wire.Frame{Type: wire.END, Flags: 0xf0, ID: id(0, 4), Payload: []byte{7}})
		p.afterCredit(id(0, 4), nil)
		p.settled()
	}},
	{"frame: another generation's", "A frame for a call that is not under way is passed over, whatever its payload.", func(t *T) {
		p := native(t)
		defer p.close()
		p.frames(p.numbered(0, id(0, 7), "block"), wire.Frame{Type: wire.CANCEL, ID: id(0, 6)}, wire.Frame{Type: wire.CANCEL, ID: id(0, 8)})
		p.settled()
		p.frames(wire.Frame{Type: wire.CANCEL, ID: id(0, 7)})
		p.cancelled(id(0, 7))
		p.settled()
	}},
	{"floods: as many as are allowed", "PING | 100 in a second in which the server read ... CANCEL | 8192 in a second, beyond one for each call made before.", func(t *T) {
		p := native(t)
		defer p.close()
		pings := make([]wire.Frame, 100)
		for i := range pings {
			pings[i] = wire.Frame{Type: wire.PING, ID: uint32(i)}
		}
		p.frames(pings...)
		for i := range pings {
			t.is(p.frame(), wire.PONG, uint32(i))
		}
		id := p.fresh()
		p.frames(p.named(id, "echo", text("after pings")))
		p.replies(id, text("after pings"))
		p.close()

		p = native(t)
		defer p.close()
		cancels := make([]wire.Frame, 8192)
		for i := range cancels {
			cancels[i] = wire.Frame{Type: wire.CANCEL, ID: uint32(i) + 65536}
		}
		p.frames(cancels...)
		p.settled()
	}},
	{"floods: more than are allowed", "PING | 100 in a second in which the server read | the server may end the connection. ... CANCEL | 8192 in a second, beyond one for each call made before. ... the server may end the connection", func(t *T) {
		for kind, times := range map[wire.Type]int{wire.PING: 300, wire.CANCEL: 3 * 8192} {
			t.one(func() {
				t.step("%d frames of type %d", times, kind)
				p := native(t)
				frames := make([]wire.Frame, times)
				for i := range frames {
					frames[i] = wire.Frame{Type: kind}
					if kind == wire.CANCEL {
						frames[i].ID = uint32(i) + 65536
					}
				}
				p.frames(frames...)
				p.frames(wire.Frame{Type: wire.PING, ID: math.MaxUint32})
				for {
					frame, err := p.next()
					if err != nil {
						t.differ("without a word: "+err.Error(), "ERROR 10 with id 0, or to be served")
					}
					if frame.Type == wire.ERROR {
						got, err := wire.ReadError(frame.Payload)
						holds(t, "error", frame, "10, of the connection", err == nil && got.Code == wire.Protocol && frame.ID == 0)
						p.closes()
						break
					}
					if frame.Type == wire.PONG && frame.ID == math.MaxUint32 {
						p.close()
						break
					}
					holds(t, "frame", frame, "PONG", frame.Type == wire.PONG)
				}
			})
		}
	}},
}

// collect2 reads one-frame replies in any order.
func (p *peer) collect2(expected map[uint32]string) {
	for len(expected) > 0 {
		frame := p.frame()
		body, is := expected[frame.ID]
		holds(p.t, "final frame", frame, fmt.Sprint("a REPLY of ", expected), is && frame.Type == wire.REPLY)
		same(p.t, "reply", string(frame.Payload), string(text(body)))
		delete(expected, frame.ID)
	}
}

// cancelled expects ERROR 1, with executed 1 if the handler had not begun and 3 otherwise, which only the server knows.
func (p *peer) cancelled(id uint32) { p.isCancelled(p.frame(), id) }

func (p *peer) isCancelled(frame wire.Frame, id uint32) {
	p.t.is(frame, wire.ERROR, id)
	got, err := wire.ReadError(frame.Payload)
	if err != nil {
		p.t.differ(err.Error(), "an error that can be read")
	}
	same(p.t, "code of "+got.Error(), got.Code, wire.Cancelled)
	holds(p.t, "executed of "+got.Error(), got.Executed, "1 or 3", got.Executed == wire.NotExecuted || got.Executed == wire.Maybe)
}

var requestChecks = []check{
	{"request: what is not there", "6 | no such service or method, or a number that is not in the dictionary | refuses: ERROR 4, with the same text in all these cases", func(t *T) {
		texts := map[string]bool{}
		names := []wire.Method{{Service: "spec", Name: "none"}, {Service: "none", Name: "echo"}}
		for _, size := range []int{127, 128, 255} {
			names = append(names, wire.Method{Service: "spec", Name: long(size)}, wire.Method{Service: long(size), Name: "echo"})
		}
		for _, m := range names {
			t.one(func() {
				t.step("service of %d bytes, method of %d bytes", len(m.Service), len(m.Name))
				p := native(t)
				defer p.close()
				p.frames(wire.Frame{Type: wire.REQUEST, Flags: wire.NAMED, ID: id(0, 1), Payload: append(wire.AppendNamed(nil, m), text("x")...)})
				texts[p.errs(id(0, 1), wire.NoSuchMethod, wire.NotExecuted).Text] = true
			})
		}
		for _, number := range []uint64{0, 1000, 1 << 20, math.MaxInt32, 1<<32 + 1, 1<<63 + 1, math.MaxUint64} {
			t.one(func() {
				t.step("number %d", number)
				p := native(t)
				defer p.close()
				p.frames(wire.Frame{Type: wire.REQUEST, ID: id(0, 1), Payload: append(varint(number), text("x")...)})
				texts[p.errs(id(0, 1), wire.NoSuchMethod, wire.NotExecuted).Text] = true
			})
		}
		same(t, "texts of error 4", len(texts), 1)
		p := native(t)
		defer p.close()
		t.step("a name that is no UTF-8")
		p.frames(wire.Frame{Type: wire.REQUEST, Flags: wire.NAMED, ID: id(0, 3), Payload: []byte{2, 0xff, 0xfe, 4, 'e', 'c', 'h', 'o'}})
		p.errs(id(0, 3), wire.NoSuchMethod, wire.NotExecuted)
		t.step("in parts")
		p.frames(split(p.named(id(0, 4), "none", text(long(300))), 20, 100)...)
		p.errs(id(0, 4), wire.NoSuchMethod, wire.NotExecuted)
		t.step("a number in more bytes than it takes")
		frame := p.numbered(0, id(0, 5), "echo", text("x"))
		frame.Payload = append([]byte{frame.Payload[0] | 0x80, 0x80, 0x00}, frame.Payload[1:]...)
		p.frames(frame)
		p.replies(id(0, 5), text("x"))
		p.settled()
	}},
	{"request: generation 0", "1 | generation 0 | ends the connection", func(t *T) {
		for _, k := range []uint32{0, 3, 4096, 65535} {
			for _, kind := range []wire.Type{wire.REQUEST, wire.NOTICE} {
				t.one(func() {
					t.step("type %d id %08x", kind, k)
					p := native(t)
					frame := p.named(k, "echo", text("x"))
					frame.Type = kind
					p.frames(frame)
					p.ends(wire.Protocol)
				})
			}
		}
	}},
	{"request: a prelude that cannot be read", "4 | the prelude is cut off, cannot be read, or its metadata have more than 8192 bytes or 64 entries | ends the connection", func(t *T) {
		pairs := wire.AppendMetadata(nil, []wire.Pair{{Name: "k", Value: long(wire.MaxMetadata - 8)}})
		same(t, "bytes of metadata", len(pairs), wire.MaxMetadata+1)
		eleven := []byte{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01}
		named := wire.AppendNamed(nil, method("echo"))
		for _, c := range []struct {
			flags   byte
			prelude []byte
		}{
			{0, nil}, {0, []byte{0x81}}, {0, eleven}, {wire.MORE, nil},
			{wire.NAMED, nil}, {wire.NAMED, named[:3]}, {wire.NAMED, named[:5]}, {wire.NAMED, named[:8]}, {wire.NAMED | wire.MORE, named[:8]},
			{wire.NAMED | wire.TIME, named}, {wire.NAMED | wire.TIME, append(named[:len(named):len(named)], eleven...)},
			{wire.NAMED | wire.METADATA, named},
			{wire.NAMED | wire.METADATA, append(named[:len(named):len(named)], 100, 1, 2)},
			{wire.NAMED | wire.METADATA, append(named[:len(named):len(named)], 2, 0xff, 0xff)},
			{wire.NAMED | wire.METADATA, append(append(named[:len(named):len(named)], varint(wire.MaxMetadata+1)...), pairs...)},
		} {
			t.one(func() {
				t.step("flags %02x prelude % x", c.flags, c.prelude[:min(len(c.prelude), 20)])
				p := native(t)
				p.frames(wire.Frame{Type: wire.REQUEST, Flags: c.flags, ID: id(0, 1), Payload: c.prelude})
				if c.flags&wire.MORE != 0 {
					p.frames(wire.Frame{Type: wire.PART, ID: id(0, 1), Payload: []byte("xxxxxxxx")})
				}
				p.ends(wire.Protocol)
			})
		}
	}},
	{"request: which line fits first", "A server looks at the first frame of a REQUEST or NOTICE in this order, and does what the first line that fits says ... A call that has been refused is over: the PARTs that still come for it are passed over.", func(t *T) {
		none := wire.AppendNamed(nil, method("none"))
		for _, c := range []struct {
			lines string
			frame wire.Frame
			code  wire.Code // 0 for the connection's end
		}{
			{"1 and 4: generation 0, cut prelude", wire.Frame{Type: wire.REQUEST, ID: 3}, 0},
			{"2 and 4: slot, cut prelude", wire.Frame{Type: wire.REQUEST, ID: id(4096, 1)}, wire.Overloaded},
			{"4 and 6: cut TIME, no method", wire.Frame{Type: wire.REQUEST, Flags: wire.NAMED | wire.TIME, ID: id(0, 1), Payload: none}, 0},
			{"6 and 8: no method, TIME 0", wire.Frame{Type: wire.REQUEST, Flags: wire.NAMED | wire.TIME, ID: id(0, 1), Payload: append(none[:len(none):len(none)], 0)}, wire.NoSuchMethod},
			{"6 and 7: NOTICE, no method", wire.Frame{Type: wire.NOTICE, Flags: wire.NAMED, ID: id(0, 1), Payload: none}, wire.NoSuchMethod},
			{"7 and 8: NOTICE of a stream, TIME 0", wire.Frame{Type: wire.NOTICE, Flags: wire.NAMED | wire.TIME, ID: id(0, 1), Payload: append(wire.AppendNamed(nil, method("count")), 0)}, wire.Invalid},
			{"8: TIME 0, and a body that cannot be read", wire.Frame{Type: wire.REQUEST, Flags: wire.NAMED | wire.TIME, ID: id(0, 1), Payload: append(wire.AppendNamed(nil, method("echo")), 0, 0xff)}, wire.Deadline},
			{"8: NOTICE, TIME 0", wire.Frame{Type: wire.NOTICE, Flags: wire.NAMED | wire.TIME, ID: id(0, 1), Payload: append(wire.AppendNamed(nil, method("echo")), 0)}, wire.Deadline},
			{"8: TIME 0, MORE", wire.Frame{Type: wire.REQUEST, Flags: wire.NAMED | wire.TIME | wire.MORE, ID: id(0, 1), Payload: append(wire.AppendNamed(nil, method("echo")), 0)}, wire.Deadline},
		} {
			t.one(func() {
				t.step("%s", c.lines)
				p := native(t)
				defer p.close()
				p.frames(c.frame)
				if c.code == 0 {
					p.ends(wire.Protocol)
					return
				}
				p.errs(c.frame.ID, c.code, wire.NotExecuted)
				p.frames(wire.Frame{Type: wire.PART, ID: c.frame.ID, Payload: []byte("late")})
				p.settled()
			})
		}
		t.step("lines 3 and 6: an id that was refused")
		p := native(t)
		refused := wire.Frame{Type: wire.REQUEST, Flags: wire.NAMED, ID: id(0, 3), Payload: none}
		p.frames(refused)
		p.errs(id(0, 3), wire.NoSuchMethod, wire.NotExecuted)
		p.frames(refused)
		p.ends(wire.Protocol)
	}},
	{"request: a slot that is taken", "3 | the slot has a call under way ... ends the connection: what comes twice is not executed twice", func(t *T) {
		for _, kind := range []wire.Type{wire.REQUEST, wire.NOTICE} {
			for _, generation := range []uint16{1, 2} {
				t.one(func() {
					t.step("type %d, generation %d after 1", kind, generation)
					p := native(t)
					second := p.named(id(0, generation), "echo", text("x"))
					second.Type = kind
					p.frames(p.numbered(0, id(0, 1), "block"), second)
					p.ends(wire.Protocol)
				})
			}
		}
	}},
	{"request: a slot that is taken by parts", "3 | the slot has a call under way ... ends the connection: what comes twice is not executed twice ... Its call is under way from its first frame until then", func(t *T) {
		p := native(t)
		p.frames(split(p.named(id(0, 1), "echo", text("abc")), 15, 100)[0], p.named(id(0, 2), "echo", text("x")))
		p.ends(wire.Protocol)
	}},
	{"request: a slot that CANCEL has not freed", "The slot is free with this ERROR; the handler is told to stop, and may go on for a while.", func(t *T) {
		p := native(t)
		defer p.close()
		p.frames(p.numbered(0, id(0, 1), "block"), wire.Frame{Type: wire.CANCEL, ID: id(0, 1)})
		p.cancelled(id(0, 1))
		p.frames(p.named(id(0, 2), "echo", text("again")))
		p.replies(id(0, 2), text("again"))
		p.settled()
	}},
	{"request: the same id twice", "or its last call had this same id, also if that call was refused by one of the lines below. ... ends the connection: what comes twice is not executed twice", func(t *T) {
		for _, kind := range []wire.Type{wire.REQUEST, wire.NOTICE} {
			t.one(func() {
				t.step("type %d", kind)
				p := native(t)
				p.frames(p.named(id(5, 9), "echo", text("x")))
				p.replies(id(5, 9), text("x"))
				again := p.named(id(5, 9), "echo", text("x"))
				again.Type = kind
				p.frames(again)
				p.ends(wire.Protocol)
			})
		}
		t.step("after an ERROR")
		p := native(t)
		p.frames(p.named(id(5, 9), "none", nil))
		p.errs(id(5, 9), wire.NoSuchMethod, wire.NotExecuted)
		p.frames(p.named(id(5, 9), "none", nil))
		p.ends(wire.Protocol)
	}},
	{"request: two generations by turns", "A server accepts any generation but that of the slot's last call.", func(t *T) {
		p := native(t)
		defer p.close()
		for i := 0; i < 20; i++ {
			for _, generation := range []uint16{65535, 1} {
				p.frames(p.named(id(0, generation), "echo", text("x")))
				p.replies(id(0, generation), text("x"))
			}
		}
	}},
	{"request: the last slot and one above", "2 | the slot is not below max_calls | refuses: ERROR 8", func(t *T) {
		p := native(t)
		defer p.close()
		last := uint16(p.server.MaxCalls - 1)
		p.frames(p.named(id(last, 1), "echo", text("last")))
		p.replies(id(last, 1), text("last"))
		for _, slot := range []uint16{last + 1, 65535} {
			for _, kind := range []wire.Type{wire.REQUEST, wire.NOTICE} {
				t.step("slot %d type %d", slot, kind)
				frame := p.named(id(slot, 1+uint16(kind)), "echo", text("x"))
				frame.Type = kind
				p.frames(frame)
				p.errs(frame.ID, wire.Overloaded, wire.NotExecuted)
				p.settled()
			}
		}
		t.step("in parts")
		k := id(last+1, 9)
		p.frames(split(p.named(k, "echo", text(long(1000))), 100, 300)...)
		p.errs(k, wire.Overloaded, wire.NotExecuted)
		p.settled()
	}},
	{"request: as many calls as there are slots", "uint32 max_calls = 2; // server: calls under way at once on this connection; 4096 unless said, never more", func(t *T) {
		p := native(t)
		defer p.close()
		calls := int(p.server.MaxCalls)
		first := make([]wire.Frame, calls)
		rest := make([]wire.Frame, calls)
		for i := range first {
			parts := split(p.named(id(uint16(i), 1), "none", text("x")), 12, 100)
			first[i], rest[i] = parts[0], parts[1]
		}
		p.frames(first...)
		p.frames(rest...)
		open := map[uint32]bool{}
		for range first {
			frame := p.frame()
			holds(t, "final frame", frame, "one ERROR of each call", frame.Type == wire.ERROR && frame.ID>>16 == 1 && !open[frame.ID])
			open[frame.ID] = true
		}
		p.settled()
	}},
	{"request: time", "TIME: varint, unsigned: microseconds left for the call, measured by the sender when it sends; rounded down ... Without TIME, the call has the client's default_micros. A time above 2^50 µs counts as 2^50 µs.", func(t *T) {
		p := native(t)
		defer p.close()
		t.step("no TIME: 10 s unless said")
		p.remains(0, id(0, 1), nil, 1, 10000000)
		t.step("TIME of 3 s")
		p.remains(wire.TIME, id(0, 2), varint(3000000), 1, 3000000)
		t.step("TIME above the standard")
		p.remains(wire.TIME, id(0, 3), varint(60000000), 10000001, 60000000)
		for i, micros := range []uint64{1 << 49, 1 << 50, 1<<50 + 1, 1 << 62, 1 << 63, math.MaxUint64} {
			t.step("TIME of %d", micros)
			p.remains(wire.TIME, id(0, uint16(4+i)), varint(micros), 60000001, 1<<50)
		}
		q := nativeWith(t, wire.Settings{DefaultMicros: 4000000})
		defer q.close()
		t.step("no TIME after default_micros of 4 s")
		q.remains(0, id(0, 1), nil, 1, 4000000)
		t.step("TIME after default_micros of 4 s")
		q.remains(wire.TIME, id(0, 2), varint(8000000), 4000001, 8000000)
	}},
	{"request: time is over", "8 | TIME 0 | refuses: ERROR 2 ... A server answers ERROR 2, not executed, when the time of a call is over before its request is whole, or before its handler has started.", func(t *T) {
		for _, kind := range []wire.Type{wire.REQUEST, wire.NOTICE} {
			t.one(func() {
				t.step("type %d, TIME 0", kind)
				p := native(t)
				defer p.close()
				frame := p.numbered(wire.TIME, id(0, 2), "echo", varint(0), text("x"))
				frame.Type = kind
				p.frames(frame)
				p.errs(id(0, 2), wire.Deadline, wire.NotExecuted)
				p.settled()
			})
			t.one(func() {
				t.step("type %d, parts that do not come in time", kind)
				p := native(t)
				defer p.close()
				first := split(p.numbered(wire.TIME, id(0, 3), "echo", varint(20000), text("abc")), 6, 100)[0]
				first.Type = kind
				p.frames(first)
				p.errs(id(0, 3), wire.Deadline, wire.NotExecuted)
				t.step("type %d, the rest of those parts", kind)
				p.frames(wire.Frame{Type: wire.PART, ID: id(0, 3), Payload: []byte("late")})
				p.settled()
			})
		}
	}},
	{"request: time ends a call", "A server ends a call whose time is over with ERROR 2, executed 3 if the handler has started ... The time of a call that takes or brings a stream is that of the whole stream.", func(t *T) {
		// A second is enough for a handler to begin.
		const micros = 1000000
		p := native(t)
		defer p.close()
		t.step("a handler that runs")
		p.frames(p.numbered(wire.TIME, id(0, 1), "block", varint(micros)))
		p.errs(id(0, 1), wire.Deadline, wire.Maybe)
		p.settled()
		t.step("a stream that waits for credit")
		p.frames(p.numbered(wire.TIME, id(0, 2), "count", varint(micros), number(2)), credit(id(0, 2), 1))
		p.item(id(0, 2), text("item 0"))
		p.errs(id(0, 2), wire.Deadline, wire.Maybe)
		t.step("credit after that")
		p.frames(credit(id(0, 2), 1))
		p.settled()
		t.step("a stream that waits for items")
		p.frames(p.numbered(wire.TIME, id(0, 3), "total", varint(micros)))
		p.credited(id(0, 3), 2)
		p.errs(id(0, 3), wire.Deadline, wire.Maybe)
		p.settled()
	}},
	{"request: metadata", "Text that is not UTF-8 is read with U+FFFD in the place of what is wrong, one or more of them as the reader likes. ... METADATA: varint: length in bytes, at most 8192; then at most 64 entries, each field 1 of a message { string name = 1; string value = 2; } ... Names of metadata are case-sensitive; the later of two entries of one name counts. ... Within an entry, unknown fields are passed over", func(t *T) {
		p := native(t)
		defer p.close()
		ask := func(generation uint16, pairs []byte, name, value string) {
			k := id(0, generation)
			p.frames(p.numbered(wire.METADATA, k, "metadata", varint(uint64(len(pairs))), pairs, text(name)))
			p.replies(k, text(value))
		}
		ask(1, wire.AppendMetadata(nil, []wire.Pair{{Name: "a", Value: "1"}, {Name: "b", Value: "zwölf"}}), "b", "zwölf")
		ask(2, nil, "b", "null")
		t.step("8192 bytes")
		value := long(wire.MaxMetadata - 9)
		pairs := wire.AppendMetadata(nil, []wire.Pair{{Name: "k", Value: value}})
		same(t, "bytes of metadata", len(pairs), wire.MaxMetadata)
		ask(3, pairs, "k", value)
		t.step("names are told apart by case; the later of two counts; unknown fields; text that is not UTF-8")
		ask(10, wire.AppendMetadata(nil, []wire.Pair{{Name: "K", Value: "1"}, {Name: "k", Value: "2"}, {Name: "k", Value: "3"}}), "k", "3")
		ask(11, wire.AppendMetadata(nil, []wire.Pair{{Name: "K", Value: "1"}}), "k", "null")
		entry := wire.AppendBytes(wire.AppendNumber(wire.AppendBytes(nil, 1, "k"), 9, 5), 2, "v")
		ask(12, wire.AppendBytes(nil, 1, entry), "k", "v")
		ask(13, wire.AppendMetadata(nil, []wire.Pair{{Name: "k", Value: "a\xffb"}}), "k", "a\ufffdb")
		t.step("with TIME, which stands first")
		pairs = wire.AppendMetadata(nil, []wire.Pair{{Name: "k", Value: "v"}})
		p.frames(p.numbered(wire.METADATA|wire.TIME, id(0, 4), "metadata", varint(5000000), varint(uint64(len(pairs))), pairs, text("k")))
		p.replies(id(0, 4), text("v"))
		t.step("by name")
		frame := p.named(id(0, 5), "metadata", nil)
		frame.Flags |= wire.METADATA | wire.TIME
		for _, part := range [][]byte{varint(5000000), varint(uint64(len(pairs))), pairs, text("k")} {
			frame.Payload = append(frame.Payload, part...)
		}
		p.frames(frame)
		p.replies(id(0, 5), text("v"))
	}},
	{"request: a body that cannot be read", "When the request is whole, the body is read; a body that cannot be read is refused with ERROR 5.", func(t *T) {
		p := native(t)
		defer p.close()
		for i, body := range [][]byte{{0x0a}, {0x0a, 0x05, 'a'}, {0x08, 0x01}, {0x0a, 0x01, 0xff}, {0xff}, {0x00, 0x00}} {
			t.step("echo with body % x", body)
			k := id(0, uint16(i+1))
			p.frames(p.numbered(0, k, "echo", body))
			p.errs(k, wire.Invalid, wire.NotExecuted)
		}
		p.settled()
	}},
	{"request: empty body, unknown fields, a scalar twice", "If a scalar comes twice, the later value counts. ... Unknown fields are passed over. (schema.md)", func(t *T) {
		p := native(t)
		defer p.close()
		p.frames(p.numbered(0, id(0, 1), "echo"))
		p.replies(id(0, 1), nil)
		p.frames(p.numbered(0, id(0, 2), "echo", wire.AppendNumber(nil, 9, 77), text("a"), wire.AppendBytes(nil, 100, "z"), text("b")))
		p.replies(id(0, 2), text("b"))
		p.frames(p.numbered(0, id(0, 3), "add", wire.AppendNumber(nil, 2, 40), wire.AppendNumber(nil, 1, 2)))
		p.replies(id(0, 3), number(42))
		p.frames(p.numbered(0, id(0, 4), "add", number(-3), wire.AppendNumber(nil, 2, 1)))
		p.replies(id(0, 4), number(-2))
	}},
	{"request: a handler that fails", "6 is a server's code for a handler, or the publisher of its stream, that failed with anything but a code that it chose itself ... executed is 2.", func(t *T) {
		p := native(t)
		defer p.close()
		p.frames(p.numbered(0, id(0, 1), "fail", text("on purpose")))
		p.errs(id(0, 1), wire.Failed, wire.WasExecuted)
		p.settled()
	}},
	{"notice: its reply", "A NOTICE gets its empty REPLY as soon as the server has all of it and before it is executed.", func(t *T) {
		p := native(t)
		defer p.close()
		notice := func(k uint32, name string, body []byte) wire.Frame {
			frame := p.numbered(0, k, name, body)
			frame.Type = wire.NOTICE
			return frame
		}
		p.frames(notice(id(0, 1), "echo", text("x")))
		p.replies(id(0, 1), nil)
		t.step("a handler that fails")
		p.frames(notice(id(0, 2), "fail", text("x")))
		p.replies(id(0, 2), nil)
		t.step("its CANCEL after the final frame, and its slot again")
		p.frames(wire.Frame{Type: wire.CANCEL, ID: id(0, 2)}, p.named(id(0, 4), "echo", text("x")))
		p.replies(id(0, 4), text("x"))
		t.step("in parts")
		parts := split(notice(id(0, 5), "echo", text(long(100))), 20, 50)
		p.frames(parts[0])
		p.settled()
		p.frames(parts[1:]...)
		p.replies(id(0, 5), nil)
		t.step("a body that cannot be read")
		p.frames(notice(id(0, 7), "echo", []byte{0xff}))
		p.replies(id(0, 7), nil)
		t.step("a stream")
		for i, name := range []string{"count", "total"} {
			p.frames(notice(id(0, uint16(8+i)), name, nil))
			p.errs(id(0, uint16(8+i)), wire.Invalid, wire.NotExecuted)
		}
		t.step("CANCEL before it is whole")
		parts = split(notice(id(0, 10), "echo", text(long(100))), 20, 50)
		p.frames(parts[0], wire.Frame{Type: wire.CANCEL, ID: id(0, 10)})
		p.errs(id(0, 10), wire.Cancelled, wire.NotExecuted)
		p.frames(parts[1:]...)
		t.step("a method that is not there")
		frame := p.named(id(0, 6), "none", nil)
		frame.Type = wire.NOTICE
		p.frames(frame)
		p.errs(id(0, 6), wire.NoSuchMethod, wire.NotExecuted)
		p.settled()
	}},
	{"cancel: a handler at work", "The server ends the call with ERROR 1 at once, before it reads on, unless its final frame has been sent already; then the server does nothing. ... A second CANCEL finds no call under way and is passed over.", func(t *T) {
		p := native(t)
		defer p.close()
		for generation := uint16(1); generation < 20; generation++ {
			k := id(0, generation)
			p.frames(p.numbered(0, k, "block"))
			if generation%2 == 0 {
				p.frames(wire.Frame{Type: wire.PING, ID: 1})
				t.is(p.frame(), wire.PONG, 1)
			}
			p.frames(wire.Frame{Type: wire.CANCEL, ID: k}, wire.Frame{Type: wire.CANCEL, ID: k})
			p.cancelled(k)
		}
		p.settled()
	}},
	{"cancel: a race with the reply", "Every REQUEST and NOTICE gets exactly one final frame, REPLY or ERROR", func(t *T) {
		p := native(t)
		defer p.close()
		for round := 0; round < 200; round++ {
			k := id(0, uint16(round+1))
			call := p.numbered(0, k, "echo", text("race"))
			if round%3 == 2 {
				call.Type = wire.NOTICE
			}
			if round%2 == 0 {
				p.frames(call, wire.Frame{Type: wire.CANCEL, ID: k})
			} else {
				p.frames(call)
				time.Sleep(time.Duration(round) * time.Microsecond)
				p.frames(wire.Frame{Type: wire.CANCEL, ID: k})
			}
			frame := p.frame()
			holds(t, "final frame", frame, "REPLY or ERROR", frame.ID == k && (frame.Type == wire.REPLY || frame.Type == wire.ERROR))
			if frame.Type == wire.ERROR {
				got, _ := wire.ReadError(frame.Payload)
				same(t, "code", got.Code, wire.Cancelled)
			}
		}
		p.settled()
	}},
	{"cancel: between parts", "The server ends the call with ERROR 1 at once, before it reads on, unless its final frame has been sent already; then the server does nothing. ... executed is 1 if the handler has not started and will not, otherwise 3.", func(t *T) {
		p := native(t)
		defer p.close()
		parts := split(p.named(id(0, 1), "echo", text(long(500))), 100, 100)
		p.frames(parts[0], parts[1], wire.Frame{Type: wire.CANCEL, ID: id(0, 1)})
		p.errs(id(0, 1), wire.Cancelled, wire.NotExecuted)
		t.step("parts that were on their way")
		p.frames(parts[2:]...)
		p.settled()
		p.frames(p.named(id(0, 2), "echo", text("next")))
		p.replies(id(0, 2), text("next"))
	}},
}

var messageChecks = []check{
	{"parts: of any size", "A message larger than one frame has MORE on its first frame, and goes on in PART frames with the same id; the last has no MORE. ... A PART, and a first frame with MORE, may be empty, and need not be full.", func(t *T) {
		p := native(t)
		defer p.close()
		whole := p.named(id(0, 1), "echo", text("abcdefgh"))
		prelude := len(whole.Payload) - len(text("abcdefgh"))
		for i, part := range []int{1, 2, 3, 100} {
			t.step("parts of %d bytes", part)
			whole.ID = id(0, uint16(i+1))
			p.frames(split(whole, prelude, part)...)
			p.replies(whole.ID, text("abcdefgh"))
		}
		t.step("empty parts")
		whole.ID = id(0, 100)
		p.frames(
			wire.Frame{Type: wire.REQUEST, Flags: wire.NAMED | wire.MORE, ID: whole.ID, Payload: whole.Payload},
			wire.Frame{Type: wire.PART, Flags: wire.MORE, ID: whole.ID},
			wire.Frame{Type: wire.PART, Flags: wire.MORE, ID: whole.ID},
			wire.Frame{Type: wire.PART, ID: whole.ID})
		p.replies(whole.ID, text("abcdefgh"))
		p.settled()
	}},
	{"parts: calls by turns", "Frames of other calls may come between them, and should, so that small messages need not wait for large ones.", func(t *T) {
		p := native(t)
		defer p.close()
		bodies := map[uint32]string{}
		var queues [][]wire.Frame
		for i := uint16(0); i < 5; i++ {
			body := fmt.Sprint(i, long(900+int(i)))
			bodies[id(i, 1)] = body
			queues = append(queues, split(p.named(id(i, 1), "echo", text(body)), 20+int(i), 100))
		}
		small := uint16(10)
		for open := true; open; {
			open = false
			for i, queue := range queues {
				if len(queue) > 0 {
					open = true
					p.frames(queue[0])
					queues[i] = queue[1:]
				}
			}
			if open && small < 15 {
				p.frames(p.named(id(small, 1), "echo", text("small")), wire.Frame{Type: wire.PING, ID: uint32(small)})
				seen := 0
				for seen < 2 {
					frame := p.frame()
					holds(t, "frame between parts", frame, "the small call's REPLY, or PONG",
						frame.Type == wire.PONG || frame.Type == wire.REPLY && frame.ID == id(small, 1))
					seen++
				}
				small++
			}
		}
		p.collect2(bodies)
		p.settled()
	}},
	{"parts: messages that mix", "These end the connection, if the call is under way: a PART where no message of this call and direction has begun; an ITEM, END or REPLY where one has begun and is not whole, in the direction in which frames of this type go.", func(t *T) {
		for name, frames := range map[string]func(p *peer) []wire.Frame{
			"PART after the whole request": func(p *peer) []wire.Frame {
				return []wire.Frame{p.numbered(0, id(0, 1), "block"), {Type: wire.PART, ID: id(0, 1), Payload: []byte{1}}}
			},
			"PART with MORE after the whole request": func(p *peer) []wire.Frame {
				return []wire.Frame{p.numbered(0, id(0, 1), "block"), {Type: wire.PART, Flags: wire.MORE, ID: id(0, 1)}}
			},
			"PART after the last PART": func(p *peer) []wire.Frame {
				blocks := p.numbered(0, id(0, 1), "block")
				blocks.Flags = wire.MORE
				return []wire.Frame{blocks, {Type: wire.PART, ID: id(0, 1)}, {Type: wire.PART, ID: id(0, 1)}}
			},
			"ITEM within the request": func(p *peer) []wire.Frame {
				return []wire.Frame{p.numbered(wire.MORE, id(0, 1), "total"), {Type: wire.ITEM, ID: id(0, 1), Payload: number(1)}}
			},
			"END within the request": func(p *peer) []wire.Frame {
				return []wire.Frame{p.numbered(wire.MORE, id(0, 1), "total"), {Type: wire.END, ID: id(0, 1)}}
			},
			"PART between items": func(p *peer) []wire.Frame {
				return []wire.Frame{p.numbered(0, id(0, 1), "total"), {Type: wire.PART, ID: id(0, 1), Payload: number(1)}}
			},
		} {
			t.one(func() {
				t.step("%s", name)
				p := native(t)
				p.frames(frames(p)...)
				p.ends(wire.Protocol)
			})
		}
		for name, second := range map[string]wire.Type{"ITEM within an item": wire.ITEM, "END within an item": wire.END} {
			t.one(func() {
				t.step("%s", name)
				p := native(t)
				p.frames(p.numbered(0, id(0, 1), "total"))
				p.credited(id(0, 1), 2)
				p.frames(wire.Frame{Type: wire.ITEM, Flags: wire.MORE, ID: id(0, 1), Payload: []byte{8}}, wire.Frame{Type: second, ID: id(0, 1)})
				p.ends(wire.Protocol)
			})
		}
	}},
	{"limit: a message of exactly the limit", "A server refuses a request whose body is above its max_message_bytes, as soon as it sees that.", func(t *T) {
		p := nativeWith(t, wire.Settings{MaxMessageBytes: 1 << 26})
		defer p.close()
		limit := int(p.server.MaxMessageBytes)
		value := long(limit - 1 - len(varint(uint64(limit))))
		same(t, "bytes of body", len(text(value)), limit)
		whole := p.named(id(0, 1), "echo", text(value))
		p.frames(split(whole, wire.MaxPayload, wire.MaxPayload)...)
		p.replies(id(0, 1), text(value))
		t.step("one above")
		body := text(value + "x")
		whole = p.named(id(0, 2), "echo", body)
		p.frames(split(whole, wire.MaxPayload, wire.MaxPayload)...)
		p.errs(id(0, 2), wire.TooLarge, wire.NotExecuted)
		p.settled()
		t.step("one above, the last byte in a part of its own")
		whole.ID = id(0, 3)
		parts := split(whole, wire.MaxPayload, wire.MaxPayload)
		last := parts[len(parts)-1]
		tail := wire.Frame{Type: wire.PART, ID: whole.ID, Payload: last.Payload[len(last.Payload)-1:]}
		parts[len(parts)-1].Payload = last.Payload[:len(last.Payload)-1]
		parts[len(parts)-1].Flags = wire.MORE
		p.frames(parts...)
		p.frames(tail)
		p.errs(id(0, 3), wire.TooLarge, wire.NotExecuted)
		p.settled()
		t.step("far above")
		whole.ID = id(0, 4)
		whole.Payload = append(whole.Payload, make([]byte, limit)...)
		p.frames(split(whole, wire.MaxPayload, wire.MaxPayload)...)
		p.errs(id(0, 4), wire.TooLarge, wire.NotExecuted)
		p.settled()
	}},
	{"limit: the client's", "a server whose result is too large answers ERROR 7, executed 2, and a stream ends in the same way if one of its items is too large.", func(t *T) {
		p := nativeWith(t, wire.Settings{MaxMessageBytes: 20000})
		defer p.close()
		value := long(20000 - 4)
		same(t, "bytes of body", len(text(value)), 20000)
		p.frames(split(p.named(id(0, 1), "echo", text(value)), wire.MaxPayload, wire.MaxPayload)...)
		p.replies(id(0, 1), text(value))
		t.step("a reply one above")
		p.frames(split(p.named(id(0, 2), "echo", text(value+"x")), wire.MaxPayload, wire.MaxPayload)...)
		p.errs(id(0, 2), wire.TooLarge, wire.WasExecuted)
		p.settled()
		t.step("an item one above")
		q := nativeWith(t, wire.Settings{MaxMessageBytes: 8})
		defer q.close()
		q.frames(q.numbered(0, id(0, 1), "count", number(20)), credit(id(0, 1), 20))
		for i := 0; i < 10; i++ {
			q.item(id(0, 1), text(fmt.Sprint("item ", i)))
		}
		q.errs(id(0, 1), wire.TooLarge, wire.WasExecuted)
	}},
	{"limit: an item of the client", "An item larger than max_message_bytes ends the call: at a server with ERROR 7, executed 2, as soon as the server sees that.", func(t *T) {
		p := native(t)
		defer p.close()
		limit := int(p.server.MaxMessageBytes)
		p.frames(p.numbered(0, id(0, 1), "total"))
		p.credited(id(0, 1), 2)
		t.step("exactly the limit")
		body := wire.AppendBytes(number(7), 9, long(limit-7))
		same(t, "bytes of item", len(body), limit)
		p.frames(split(wire.Frame{Type: wire.ITEM, ID: id(0, 1), Payload: body}, wire.MaxPayload, wire.MaxPayload)...)
		p.frames(wire.Frame{Type: wire.END, ID: id(0, 1)})
		p.afterCredit(id(0, 1), number(7))
		t.step("one above")
		p.frames(p.numbered(0, id(0, 2), "total"))
		p.credited(id(0, 2), 2)
		body = append(body, 0)
		p.frames(split(wire.Frame{Type: wire.ITEM, ID: id(0, 2), Payload: body}, wire.MaxPayload, wire.MaxPayload)...)
		p.errs(id(0, 2), wire.TooLarge, wire.WasExecuted)
		p.frames(wire.Frame{Type: wire.END, ID: id(0, 2)})
		p.settled()
	}},
}

var streamChecks = []check{
	{"stream: items within credit", "A method whose result is a stream sends an ITEM for each item, never more than the client's CREDIT for this call adds up to, and ends with an empty REPLY, or with ERROR. ... Credit of a call begins at 0 in each direction. Each CREDIT is added to what is left, and never replaces it; each item that is sent takes one off.", func(t *T) {
		p := native(t)
		defer p.close()
		k := id(0, 1)
		p.frames(p.numbered(0, k, "count", number(6)))
		p.settled()
		p.frames(credit(k, 1))
		p.item(k, text("item 0"))
		p.settled()
		p.frames(credit(k, 1), credit(k, 2))
		for i := 1; i < 4; i++ {
			p.item(k, text(fmt.Sprint("item ", i)))
		}
		p.settled()
		t.step("the last items, with as much credit as they need")
		p.frames(credit(k, 2))
		p.item(k, text("item 4"))
		p.item(k, text("item 5"))
		p.replies(k, nil)
		t.step("credit after the end")
		p.frames(credit(k, 5))
		p.settled()
	}},
	{"stream: credit beside the request", "CREDIT may follow its REQUEST at once, even while the REQUEST is still in parts. ... END costs no credit, nor does the REPLY of a stream: a side that has no more items says so without waiting for credit.", func(t *T) {
		p := native(t)
		defer p.close()
		k := id(0, 1)
		p.frames(p.numbered(0, k, "count", number(3)), credit(k, 1000000))
		for i := 0; i < 3; i++ {
			p.item(k, text(fmt.Sprint("item ", i)))
		}
		p.replies(k, nil)
		t.step("no items, no credit")
		p.frames(p.numbered(0, id(0, 2), "count", number(0)))
		p.replies(id(0, 2), nil)
		p.settled()
	}},
	{"stream: a reader that cancels", "The server ends the call with ERROR 1 at once, before it reads on, unless its final frame has been sent already; then the server does nothing. ... With more PARTs or ITEMs to come, the answer is ERROR 1.", func(t *T) {
		p := native(t)
		defer p.close()
		for generation := uint16(1); generation < 20; generation++ {
			k := id(0, generation)
			p.frames(p.numbered(0, k, "count", number(1000000)), credit(k, uint64(generation)*10), wire.Frame{Type: wire.CANCEL, ID: k})
			items := 0
			frame := p.frame()
			for ; frame.Type == wire.ITEM && frame.ID == k; frame = p.frame() {
				items++
			}
			holds(t, "items", items, "at most the credit", items <= int(generation)*10)
			p.isCancelled(frame, k)
			p.frames(credit(k, 100))
		}
		p.settled()
	}},
	{"stream: credit that is none", "A varint that is longer or cut off ends the connection. ... a CREDIT of 0, or without a number, ends the connection. ... a CREDIT of 0 ends the connection there too.", func(t *T) {
		for _, payload := range [][]byte{nil, {0}, {0x80, 0x00}, {0x80}, {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01}} {
			for _, name := range []string{"count", "total", "block"} {
				t.one(func() {
					t.step("CREDIT [% x] of %s", payload, name)
					p := native(t)
					p.frames(p.numbered(0, id(0, 1), name, number(1)), wire.Frame{Type: wire.CREDIT, ID: id(0, 1), Payload: payload})
					p.ends(wire.Protocol)
				})
			}
		}
	}},
	{"stream: more credit than there is", "A sum above 2^63 − 1 counts as 2^63 − 1, is no fault, and is counted down from there like any other. ... A CREDIT of 2^63 or more counts as 2^63 − 1 ... CREDIT to a side that sends no items on this call has no effect and gets no answer", func(t *T) {
		p := native(t)
		defer p.close()
		for i, sums := range [][]uint64{{1 << 63}, {math.MaxUint64}, {math.MaxInt64, math.MaxInt64}, {1, math.MaxUint64, 1, 1 << 63}} {
			k := id(0, uint16(i+1))
			t.step("CREDIT %v", sums)
			frames := []wire.Frame{p.numbered(0, k, "count", number(3))}
			for _, sum := range sums {
				frames = append(frames, credit(k, sum))
			}
			p.frames(frames...)
			for item := 0; item < 3; item++ {
				p.item(k, text(fmt.Sprint("item ", item)))
			}
			p.replies(k, nil)
		}
		t.step("to calls without items")
		p.frames(p.numbered(0, id(0, 9), "total"), credit(id(0, 9), 5), p.numbered(0, id(1, 9), "block"), credit(id(1, 9), 5))
		p.credited(id(0, 9), 1)
		p.settled()
	}},
	{"stream: credit within the request's parts", "CREDIT may follow its REQUEST at once, even while the REQUEST is still in parts.", func(t *T) {
		p := native(t)
		defer p.close()
		parts := split(p.numbered(0, id(0, 1), "count", number(2)), 1, 100)
		p.frames(parts[0], credit(id(0, 1), 5), parts[1])
		p.item(id(0, 1), text("item 0"))
		p.item(id(0, 1), text("item 1"))
		p.replies(id(0, 1), nil)
		p.settled()
	}},
	{"stream: items without credit", "An ITEM without credit ends the connection. So does, on both sides, every ITEM on a call that has no stream in that direction", func(t *T) {
		for _, name := range []string{"block", "count"} {
			for _, flags := range []byte{0, wire.MORE} {
				t.one(func() {
					t.step("ITEM of %s, flags %02x", name, flags)
					p := native(t)
					p.frames(p.numbered(0, id(0, 1), name, number(1)), wire.Frame{Type: wire.ITEM, Flags: flags, ID: id(0, 1), Payload: number(1)})
					p.ends(wire.Protocol)
				})
			}
		}
	}},
	{"stream: after END", "After END the client sends neither ITEM, PART nor END on this call: each of these ends the connection while the call is under way, and is passed over if ERROR or the first frame of a REPLY was first.", func(t *T) {
		for _, kind := range []wire.Type{wire.ITEM, wire.PART, wire.END} {
			t.one(func() {
				t.step("type %d", kind)
				p := native(t)
				// An item that is not the last keeps the handler at work until END is there.
				p.frames(p.numbered(0, id(0, 1), "total"))
				p.credited(id(0, 1), 1)
				p.frames(wire.Frame{Type: wire.END, ID: id(0, 1)}, wire.Frame{Type: kind, ID: id(0, 1), Payload: number(1)})
				// The call may have ended before the second frame was read, which is then passed over.
				frame, err := p.next()
				for ; err == nil && frame.Type == wire.CREDIT; frame, err = p.next() {
				}
				holds(t, "frame", fmt.Sprint(frame, err), "REPLY, or ERROR 10 with id 0", err == nil &&
					(frame.Type == wire.REPLY && frame.ID == id(0, 1) || frame.Type == wire.ERROR && frame.ID == 0))
				if frame.Type == wire.ERROR {
					p.closes()
				}
				p.close()
			})
		}
	}},
	{"stream: END where no stream is", "On a method that takes no stream each END is passed over once the request is whole.", func(t *T) {
		p := native(t)
		defer p.close()
		end := wire.Frame{Type: wire.END, ID: id(0, 1)}
		p.frames(p.numbered(0, id(0, 1), "count", number(1)), end, end)
		p.settled()
		p.frames(credit(id(0, 1), 1))
		p.item(id(0, 1), text("item 0"))
		p.replies(id(0, 1), nil)
		p.frames(p.numbered(0, id(0, 2), "block"), wire.Frame{Type: wire.END, ID: id(0, 2)}, wire.Frame{Type: wire.CANCEL, ID: id(0, 2)})
		p.cancelled(id(0, 2))
		p.settled()
	}},
	{"stream: a body beside the stream", "Its REQUEST has an empty body (a body that is not empty is ignored, and still counts for max_message_bytes).", func(t *T) {
		p := native(t)
		defer p.close()
		for i, body := range [][]byte{number(5), {0xff}} {
			p.frames(p.numbered(0, id(0, uint16(i+1)), "total", body), wire.Frame{Type: wire.END, ID: id(0, uint16(i+1))})
			p.afterCredit(id(0, uint16(i+1)), nil)
		}
		p.settled()
	}},
	{"stream: an item that cannot be read", "An item that cannot be read ends the stream for its reader, not the call. At a server the handler decides how the call ends", func(t *T) {
		p := native(t)
		defer p.close()
		p.frames(p.numbered(0, id(0, 1), "total"))
		p.credited(id(0, 1), 1)
		p.frames(wire.Frame{Type: wire.ITEM, ID: id(0, 1), Payload: []byte{0xff}})
		frame := p.frame()
		for ; frame.Type == wire.CREDIT; frame = p.frame() {
		}
		t.is(frame, wire.ERROR, id(0, 1))
		p.settled()
	}},
	{"stream: items of the client", "The client sends an ITEM for each item within the server's CREDIT, and then END.", func(t *T) {
		p := native(t)
		defer p.close()
		k := id(0, 1)
		p.frames(p.numbered(0, k, "total"))
		credit, sum := uint64(0), 0
		for i := 1; i <= 20; i++ {
			if credit == 0 {
				credit = p.credited(k, 1)
			}
			credit--
			sum += i
			p.frames(wire.Frame{Type: wire.ITEM, ID: k, Payload: number(i)})
		}
		p.frames(wire.Frame{Type: wire.END, ID: k})
		p.afterCredit(k, number(sum))
		t.step("END at once")
		k = id(0, 2)
		p.frames(p.numbered(0, k, "total"), wire.Frame{Type: wire.END, ID: k})
		p.afterCredit(k, nil)
		t.step("items in parts")
		k = id(0, 3)
		p.frames(p.numbered(0, k, "total"))
		p.credited(k, 2)
		body := number(1000000)
		p.frames(split(wire.Frame{Type: wire.ITEM, ID: k, Payload: body}, 1, 1)...)
		p.frames(split(wire.Frame{Type: wire.ITEM, ID: k, Payload: body}, 0, 2)...)
		p.frames(wire.Frame{Type: wire.END, ID: k})
		p.afterCredit(k, number(2000000))
		p.settled()
	}},
	{"stream: a writer that cancels", "The server ends the call with ERROR 1 at once, before it reads on, unless its final frame has been sent already; then the server does nothing.", func(t *T) {
		p := native(t)
		defer p.close()
		for generation := uint16(1); generation < 20; generation++ {
			k := id(0, generation)
			p.frames(p.numbered(0, k, "total"))
			p.credited(k, 1)
			item := wire.Frame{Type: wire.ITEM, ID: k, Payload: number(1)}
			if generation%2 == 0 {
				item.Flags = wire.MORE
			}
			p.frames(item, wire.Frame{Type: wire.CANCEL, ID: k})
			frame := p.frame()
			for ; frame.Type == wire.CREDIT && frame.ID == k; frame = p.frame() {
			}
			p.isCancelled(frame, k)
			p.frames(wire.Frame{Type: wire.PART, ID: k, Payload: []byte{1}}, wire.Frame{Type: wire.END, ID: k})
		}
		p.settled()
	}},
}

// afterCredit expects a call's reply, with credit before it that no longer matters.
func (p *peer) afterCredit(id uint32, body []byte) {
	frame := p.frame()
	for ; frame.Type == wire.CREDIT && frame.ID == id; frame = p.frame() {
	}
	p.t.is(frame, wire.REPLY, id)
	same(p.t, "reply", fmt.Sprintf("% x", frame.Payload), fmt.Sprintf("% x", body))
}

var closingChecks = []check{
	{"goaway: a request after it", "A REQUEST or NOTICE after the client's GOAWAY is refused with ERROR 3, whoever sent GOAWAY first.", func(t *T) {
		p := native(t)
		p.frames(p.numbered(0, id(0, 1), "block"), wire.Frame{Type: wire.GOAWAY}, p.named(id(1, 1), "echo", text("x")))
		p.errs(id(1, 1), wire.Unavailable, wire.NotExecuted)
		t.step("a NOTICE")
		notice := p.named(id(1, 2), "echo", text("x"))
		notice.Type = wire.NOTICE
		p.frames(notice)
		p.errs(id(1, 2), wire.Unavailable, wire.NotExecuted)
		t.step("a request in parts")
		p.frames(split(p.named(id(1, 3), "echo", text(long(100))), 20, 40)...)
		p.errs(id(1, 3), wire.Unavailable, wire.NotExecuted)
		t.step("the call that was under way")
		p.frames(wire.Frame{Type: wire.CANCEL, ID: id(0, 1)})
		p.cancelled(id(0, 1))
		p.closes()
	}},
	{"goaway: twice, with an id, without calls", "The call id of SETTINGS, DICTIONARY, SCHEMA and GOAWAY is ignored. ... A second GOAWAY is passed over. ... When the client's GOAWAY has been sent and all calls have ended, either side closes", func(t *T) {
		p := native(t)
		p.frames(p.numbered(0, id(0, 1), "block"), wire.Frame{Type: wire.GOAWAY, ID: 5, Payload: []byte{1}}, wire.Frame{Type: wire.GOAWAY},
			wire.Frame{Type: wire.PING, ID: 9})
		t.is(p.frame(), wire.PONG, 9)
		p.frames(p.named(id(1, 1), "echo", text("x")))
		p.errs(id(1, 1), wire.Unavailable, wire.NotExecuted)
		p.frames(wire.Frame{Type: wire.CANCEL, ID: id(0, 1)})
		p.cancelled(id(0, 1))
		p.closes()
		p = native(t)
		p.frames(wire.Frame{Type: wire.GOAWAY})
		p.closes()
	}},
	{"goaway: a request in parts goes on", "The client sends its own GOAWAY as its last frame except PART, CANCEL, CREDIT, ITEM and END of calls under way", func(t *T) {
		p := native(t)
		parts := split(p.named(id(0, 1), "echo", text("abc")), 12, 2)
		p.frames(parts[0], wire.Frame{Type: wire.GOAWAY})
		p.frames(parts[1:]...)
		p.replies(id(0, 1), text("abc"))
		p.closes()
	}},
	{"closing: the client's ERROR", "ERROR with id 0 says why the sender closes the connection. A side that receives it closes too, whatever the code", func(t *T) {
		for _, code := range []wire.Code{0, wire.Protocol, wire.Unavailable, 99} {
			t.one(func() {
				t.step("code %d", code)
				p := native(t)
				p.frames(p.numbered(0, id(0, 1), "block"), wire.Frame{Type: wire.ERROR, Payload: wire.AppendNumber(nil, 1, uint64(code))})
				p.closes()
			})
		}
	}},
	{"closing: one direction", "A side that reads the end of the stream closes its own side too, also if the peer has closed only one direction", func(t *T) {
		p := native(t)
		p.frames(p.numbered(0, id(0, 1), "block"))
		_ = p.socket.CloseWrite()
		p.closes()
	}},
	{"goaway: calls under way go on", "The client sends its own GOAWAY as its last frame except PART, CANCEL, CREDIT, ITEM and END of calls under way", func(t *T) {
		p := native(t)
		up, down := id(0, 1), id(1, 1)
		p.frames(p.numbered(0, up, "total"))
		p.credited(up, 1)
		p.frames(p.numbered(0, down, "count", number(2)), wire.Frame{Type: wire.GOAWAY}, credit(down, 1))
		p.item(down, text("item 0"))
		p.frames(wire.Frame{Type: wire.ITEM, ID: up, Payload: number(7)}, wire.Frame{Type: wire.END, ID: up})
		p.afterCredit(up, number(7))
		p.frames(credit(down, 1))
		p.item(down, text("item 1"))
		p.replies(down, nil)
		p.closes()
	}},
	{"closing: calls that nobody waits for", "calls under way are cancelled, and no more replies are sent", func(t *T) {
		for i := 0; i < 20; i++ {
			p := native(t)
			p.frames(p.numbered(0, id(0, 1), "block"), p.numbered(0, id(1, 1), "total"), p.numbered(0, id(2, 1), "count", number(100)),
				credit(id(2, 1), 3), split(p.named(id(3, 1), "echo", text("abc")), 15, 100)[0])
			if i%2 == 0 {
				_ = p.socket.SetLinger(0)
			}
			p.close()
		}
		p := native(t)
		defer p.close()
		p.settled()
	}},
}

var slowChecks = []check{
	{"floods: no preface", "the first byte of either form; the whole preface; with TLS the handshake before them | the lesser of 10 s and the server's keep-alive time after the connection was accepted (see Standing still) | closed without a word", func(t *T) {
		for _, sent := range [][]byte{nil, {0x52}, wire.Preface[:7]} {
			t.one(func() {
				t.step("sent [% x]", sent)
				p := plain(t)
				begun := time.Now()
				p.send(sent)
				_ = p.socket.SetReadDeadline(time.Now().Add(patience))
				got, err := p.in.ReadByte()
				took := time.Since(begun)
				holds(t, "byte", got, "none", err != nil)
				holds(t, "closed after", took, "some 10 s", took > 9*time.Second && took < patience)
				p.close()
			})
		}
	}},
	{"parts: a request that stands still", "A server need not wait for a REQUEST, NOTICE or ITEM in parts that brings less than 1024 bytes in 10 s ... It answers ERROR 2, not executed for REQUEST and NOTICE, executed 3 for ITEM.", func(t *T) {
		p := native(t)
		defer p.close()
		begun := time.Now()
		p.frames(split(p.numbered(wire.TIME, id(0, 1), "echo", varint(60000000), text("abc")), 6, 1)[0])
		time.Sleep(8 * time.Second)
		p.frames(wire.Frame{Type: wire.PART, Flags: wire.MORE, ID: id(0, 1)})
		p.errs(id(0, 1), wire.Deadline, wire.NotExecuted)
		took := time.Since(begun)
		holds(t, "refused after", took, "some 10 s", took > 9*time.Second && took < 17*time.Second)
		p.settled()
	}},
}
