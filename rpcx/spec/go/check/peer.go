package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	wire "rpcx.dev/spec/client"
)

// peer is a client without any care: it sends what a check says, also what the page forbids.
type peer struct {
	t       *T
	socket  *net.TCPConn
	in      *bufio.Reader
	server  wire.Settings
	methods map[wire.Method]wire.Entry
	slot    uint16 // next one that was not used by fresh
	over    map[uint32]bool
}

func method(name string) wire.Method { return wire.Method{Service: "spec", Name: name} }

func text(value string) []byte { return wire.AppendBytes(nil, 1, value) }

func number(value int) []byte { return wire.AppendNumber(nil, 1, uint64(int64(value))) }

// plain connects and sends nothing.
func plain(t *T) *peer {
	socket, err := net.DialTimeout("tcp", t.address, patience)
	if err != nil {
		t.differ(err.Error(), "a connection")
	}
	_ = socket.SetDeadline(time.Now().Add(patience))
	return &peer{t: t, socket: socket.(*net.TCPConn), in: bufio.NewReaderSize(socket, 1<<16), methods: map[wire.Method]wire.Entry{}, over: map[uint32]bool{}}
}

// native connects and exchanges preface, settings and dictionary.
func native(t *T) *peer { return nativeWith(t, wire.Settings{}) }

func nativeWith(t *T, own wire.Settings) *peer {
	p := plain(t)
	p.send(wire.Preface)
	p.frames(wire.Frame{Type: wire.SETTINGS, Payload: own.Payload()})
	p.greeted()
	return p
}

// greeted reads the server's preface, settings and dictionary.
func (p *peer) greeted() {
	p.preface()
	settings := p.frame()
	p.t.is(settings, wire.SETTINGS, 0)
	var err error
	if p.server, err = wire.ReadSettings(settings.Payload); err != nil {
		p.t.differ(err.Error(), "settings that can be read")
	}
	for more := true; more; {
		frame := p.frame()
		p.t.is(frame, wire.DICTIONARY, 0)
		if err := wire.ReadDictionary(frame.Payload, p.methods); err != nil {
			p.t.differ(err.Error(), "a dictionary that can be read")
		}
		more = frame.Flags&wire.MORE != 0
	}
}

func (p *peer) preface() {
	got := make([]byte, 8)
	_ = p.socket.SetReadDeadline(time.Now().Add(patience))
	if _, err := io.ReadFull(p.in, got); err != nil {
		p.t.differ(err.Error(), "the server's preface")
	}
	same(p.t, "preface", fmt.Sprintf("% x", got), fmt.Sprintf("% x", wire.Preface))
}

func (p *peer) close() { _ = p.socket.Close() }

// send writes bytes in one packet. A server that has ended the connection already is found by what is read then.
func (p *peer) send(content []byte) {
	p.t.sent = content
	_, _ = p.socket.Write(content)
}

// frames writes all frames in one packet.
func (p *peer) frames(frames ...wire.Frame) {
	var content []byte
	for _, frame := range frames {
		if frame.Type == wire.REQUEST || frame.Type == wire.NOTICE {
			delete(p.over, frame.ID)
		}
		content = wire.AppendFrame(content, frame)
	}
	p.send(content)
}

// frame reads the next frame and answers the server's pings.
func (p *peer) frame() wire.Frame {
	frame, err := p.next()
	if err != nil {
		p.t.differ(err.Error(), "a frame")
	}
	return frame
}

// next passes over credit for calls that are over, which crosses with their end.
func (p *peer) next() (wire.Frame, error) {
	for {
		_ = p.socket.SetReadDeadline(time.Now().Add(patience))
		frame, err := wire.ReadFrame(p.in)
		switch {
		case err != nil:
			return frame, err
		case frame.Type == wire.PING:
			p.frames(wire.Frame{Type: wire.PONG, ID: frame.ID})
			continue
		case frame.Type == wire.CREDIT && p.over[frame.ID]:
			continue
		case frame.Type == wire.ERROR || frame.Type == wire.REPLY && frame.Flags&wire.MORE == 0:
			holds(p.t, "final frame", frame, "one for each call", !p.over[frame.ID])
			p.over[frame.ID] = true
		}
		return frame, nil
	}
}

func (t *T) is(frame wire.Frame, kind wire.Type, id uint32) {
	t.count++
	if frame.Type != kind || frame.ID != id {
		t.differ(frame.String(), fmt.Sprintf("type %d id %08x", kind, id))
	}
}

// replies expects the whole reply of a call, in one frame or several.
func (p *peer) replies(id uint32, body []byte) {
	frame := p.frame()
	p.t.is(frame, wire.REPLY, id)
	got := frame.Payload
	for frame.Flags&wire.MORE != 0 {
		frame = p.frame()
		p.t.is(frame, wire.PART, id)
		got = append(got, frame.Payload...)
	}
	p.t.count++
	if !bytes.Equal(got, body) {
		at := 0
		for at < min(len(got), len(body)) && got[at] == body[at] {
			at++
		}
		p.t.differ(fmt.Sprintf("reply of %d bytes, from byte %d: % x", len(got), at, got[at:min(len(got), at+32)]),
			fmt.Sprintf("%d bytes: % x", len(body), body[at:min(len(body), at+32)]))
	}
}

func (p *peer) errs(id uint32, code wire.Code, executed wire.Executed) *wire.Error {
	frame := p.frame()
	p.t.is(frame, wire.ERROR, id)
	got, err := wire.ReadError(frame.Payload)
	if err != nil {
		p.t.differ(err.Error(), "an error that can be read")
	}
	same(p.t, "code of "+got.Error(), got.Code, code)
	same(p.t, "executed of "+got.Error(), got.Executed, executed)
	return got
}

func (p *peer) item(id uint32, body []byte) {
	frame := p.frame()
	p.t.is(frame, wire.ITEM, id)
	same(p.t, "item", string(frame.Payload), string(body))
}

// ends expects that the server says why it ends the connection, and ends it.
func (p *peer) ends(code wire.Code) {
	for {
		frame, err := p.next()
		if err != nil {
			p.t.differ("without a word: "+err.Error(), fmt.Sprintf("ERROR %d with id 0", code))
		}
		if frame.Type == wire.ERROR && frame.ID == 0 {
			got, err := wire.ReadError(frame.Payload)
			if err != nil {
				p.t.differ(err.Error(), "an error that can be read")
			}
			same(p.t, "code of "+got.Error(), got.Code, code)
			p.closes()
			return
		}
		if frame.Type != wire.CREDIT {
			p.t.differ(frame.String(), fmt.Sprintf("ERROR %d with id 0", code))
		}
	}
}

// closes expects the connection's end and nothing before it.
func (p *peer) closes() {
	frame, err := p.next()
	p.t.count++
	switch {
	case err == nil:
		p.t.differ(frame.String(), "the connection's end")
	case isTimeout(err):
		p.t.differ("nothing", "the connection's end")
	}
	p.close()
}

// closesSilently expects the connection's end without a word.
func (p *peer) closesSilently() {
	one := make([]byte, 1)
	_ = p.socket.SetReadDeadline(time.Now().Add(patience))
	n, err := p.in.Read(one)
	holds(p.t, "bytes before the end", fmt.Sprintf("% x, %v", one[:n], err), "none, and the end", n == 0 && !isTimeout(err))
	p.close()
}

func isTimeout(err error) bool {
	var late net.Error
	return errors.As(err, &late) && late.Timeout()
}

// settled expects that the server has nothing more to say than the answer to a ping, and that it still serves.
func (p *peer) settled() {
	p.frames(wire.Frame{Type: wire.PING, ID: 0xabcdef})
	p.t.is(p.frame(), wire.PONG, 0xabcdef)
	id := p.fresh()
	p.frames(p.named(id, "echo", text("still here")))
	p.replies(id, text("still here"))
}

// fresh is an id that this peer has not used, in slots and of a generation that checks leave alone.
func (p *peer) fresh() uint32 {
	p.slot++
	return id(1000+p.slot, 0x7000)
}

func id(slot, generation uint16) uint32 { return uint32(generation)<<16 | uint32(slot) }

func (p *peer) named(id uint32, name string, body []byte) wire.Frame {
	prelude := wire.AppendNamed(nil, method(name))
	return wire.Frame{Type: wire.REQUEST, Flags: wire.NAMED, ID: id, Payload: append(prelude, body...)}
}

// numbered is a request by number whose prelude continues with what the flags say.
func (p *peer) numbered(flags byte, id uint32, name string, rest ...[]byte) wire.Frame {
	payload := wire.AppendVarint(nil, uint64(p.methods[method(name)].Number))
	for _, part := range rest {
		payload = append(payload, part...)
	}
	return wire.Frame{Type: wire.REQUEST, Flags: flags, ID: id, Payload: payload}
}

func varint(value uint64) []byte { return wire.AppendVarint(nil, value) }

func credit(id uint32, items uint64) wire.Frame {
	return wire.Frame{Type: wire.CREDIT, ID: id, Payload: varint(items)}
}

// credited reads the server's credit for a call until it adds up to so many items, and returns what it adds up to.
func (p *peer) credited(id uint32, items uint64) uint64 {
	sum := uint64(0)
	for sum < items {
		frame := p.frame()
		p.t.is(frame, wire.CREDIT, id)
		more, n := binary.Uvarint(frame.Payload)
		holds(p.t, "bytes of CREDIT", len(frame.Payload), "one varint", n > 0 && n == len(frame.Payload))
		sum += more
	}
	return sum
}

// split cuts a request into a first frame and parts of at most so many bytes.
func split(whole wire.Frame, first, part int) []wire.Frame {
	payload := whole.Payload
	whole.Payload = payload[:first]
	whole.Flags |= wire.MORE
	frames := []wire.Frame{whole}
	for payload = payload[first:]; ; {
		size := min(part, len(payload))
		frame := wire.Frame{Type: wire.PART, ID: whole.ID, Payload: payload[:size]}
		payload = payload[size:]
		if len(payload) > 0 {
			frame.Flags = wire.MORE
		}
		frames = append(frames, frame)
		if len(payload) == 0 {
			return frames
		}
	}
}

func long(bytes int) string { return strings.Repeat("0123456789abcdef", bytes/16+1)[:bytes] }
