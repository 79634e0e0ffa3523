// Package client speaks the wire of RPCX, native and classic. It is written from spec/wire.md alone.
//
// Starting points: Dial for the native form, DialClassic for the classic one. All methods may be called from any
// goroutine; a stream has one sender and one receiver at a time.
package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// window is how many items a stream welcomes at once.
const window = 16

// Conn is one native connection.
type Conn struct {
	socket net.Conn
	own    Settings

	heard atomic.Bool // a frame has come since watch looked last

	writeMu sync.Mutex
	out     *bufio.Writer

	mu         sync.Mutex
	server     Settings
	methods    map[Method]Entry
	calls      map[uint16]*call // by slot, until the final frame
	generation map[uint16]uint16
	free       []uint16 // slots whose call has ended
	nextSlot   int      // slots from here on were never used
	draining   bool     // no more requests on this connection
	sending    int      // requests that have not been sent whole
	goneAway   bool     // GOAWAY was sent
	failure    error    // why the connection ended
	ready      chan struct{}
	ended      chan struct{}
	pings      map[uint32]chan struct{}
	nextPing   uint32
}

// keepAlive is how long a peer may be silent. A PING asks it after a third, and after two thirds it is taken for gone.
const keepAlive = 60 * time.Second

// call is a request under way. Its fields are guarded by the connection's mu.
type call struct {
	id       uint32
	slot     uint16
	begun    bool // the request's first frame has been sent
	whole    bool // all of the request has been sent
	over     bool // the final frame has come, or the connection has ended
	nobody   bool // CANCEL was sent, or follows the first frame
	reply    []byte
	err      error
	parts    []byte // of a reply or an item that is not whole
	partOf   Type
	size     uint64 // bytes of that message, also where it is above the limit and dropped
	items    [][]byte
	credit   uint64        // items that may be sent
	welcome  uint64        // items that may come
	changed  chan struct{} // closed and replaced at each change
	answered bool          // the first frame of its REPLY has come: nothing more is sent for it but CREDIT and CANCEL
	requests int           // items received since credit was given last
}

func (k *call) change() {
	close(k.changed)
	k.changed = make(chan struct{})
}

// Dial connects, sends preface and settings, and does not wait for the server's. Zero fields of own mean the standard.
func Dial(ctx context.Context, address string, own Settings) (*Conn, error) {
	var dialer net.Dialer
	socket, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fault(Unavailable, err.Error(), NotExecuted)
	}
	c := &Conn{
		socket:     socket,
		own:        own,
		out:        bufio.NewWriter(socket),
		server:     StandardSettings,
		methods:    map[Method]Entry{},
		calls:      map[uint16]*call{},
		generation: map[uint16]uint16{},
		ready:      make(chan struct{}),
		ended:      make(chan struct{}),
		pings:      map[uint32]chan struct{}{},
		nextPing:   1,
	}
	c.own = own.orStandard()
	c.writeMu.Lock()
	_, err = c.out.Write(Preface)
	c.writeMu.Unlock()
	if err == nil {
		err = c.write(Frame{Type: SETTINGS, Payload: own.Payload()})
	}
	if err != nil {
		_ = socket.Close()
		return nil, fault(Unavailable, err.Error(), NotExecuted)
	}
	go c.read()
	go c.watch()
	return c, nil
}

// watch ends a connection whose server has gone without a word.
func (c *Conn) watch() {
	steps := time.NewTicker(keepAlive / 3)
	defer steps.Stop()
	for silent := 0; ; {
		select {
		case <-c.ended:
			return
		case <-steps.C:
		}
		if silent++; c.heard.Swap(false) {
			silent = 0
		}
		switch silent {
		case 1:
			_ = c.write(Frame{Type: PING})
		case 2:
			c.fail(fault(Unavailable, "the server is silent", Maybe))
			return
		}
	}
}

// Ready waits until the server's dictionary is there, and returns what the server said of itself.
func (c *Conn) Ready(ctx context.Context) (Settings, map[Method]Entry, error) {
	select {
	case <-c.ready:
	case <-c.ended:
		return Settings{}, nil, c.failure
	case <-ctx.Done():
		return Settings{}, nil, ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	methods := map[Method]Entry{}
	for method, entry := range c.methods {
		methods[method] = entry
	}
	return c.server, methods, nil
}

// Call sends a request and waits for its reply's body.
func (c *Conn) Call(ctx context.Context, method Method, body []byte, metadata ...Pair) ([]byte, error) {
	return c.await(ctx, REQUEST, method, body, metadata)
}

// Notice sends a call whose result nobody waits for, and returns when the server has all of it.
func (c *Conn) Notice(ctx context.Context, method Method, body []byte, metadata ...Pair) error {
	_, err := c.await(ctx, NOTICE, method, body, metadata)
	return err
}

func (c *Conn) await(ctx context.Context, kind Type, method Method, body []byte, metadata []Pair) ([]byte, error) {
	ctx, stop := c.within(ctx)
	defer stop()
	k, err := c.begin(ctx, kind, method, body, metadata)
	if err != nil {
		return nil, err
	}
	for {
		c.mu.Lock()
		over, changed := k.over, k.changed
		c.mu.Unlock()
		if over {
			return k.reply, k.err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, c.giveUp(k, ctx)
		}
	}
}

// within puts the connection's standard time around a call that has no time of its own.
func (c *Conn) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, has := ctx.Deadline(); has {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Duration(c.own.DefaultMicros)*time.Microsecond)
}

// Stream is a call with items in either direction or both.
type Stream struct {
	conn *Conn
	call *call
	ctx  context.Context
	stop context.CancelFunc
}

// Open begins a call whose result is a stream, or that takes a stream, or both. Its context ends the whole call.
func (c *Conn) Open(ctx context.Context, method Method, body []byte, metadata ...Pair) (*Stream, error) {
	ctx, stop := c.within(ctx)
	k, err := c.begin(ctx, REQUEST, method, body, metadata)
	if err == nil {
		err = c.welcome(k, window)
	}
	if err != nil {
		stop()
		return nil, err
	}
	return &Stream{c, k, ctx, stop}, nil
}

// welcome gives the server credit.
func (c *Conn) welcome(k *call, items uint64) error {
	c.mu.Lock()
	k.welcome += items
	c.mu.Unlock()
	return c.write(Frame{Type: CREDIT, ID: k.id, Payload: AppendVarint(nil, items)})
}

// Send sends an item when the server's credit allows it. It returns the call's error, or io.EOF after its reply.
func (s *Stream) Send(item []byte) error {
	c, k := s.conn, s.call
	for {
		c.mu.Lock()
		over, credit, changed := k.over || k.nobody, k.credit, k.changed
		if k.answered {
			credit = 0
		}
		if !over && credit > 0 {
			k.credit--
		}
		c.mu.Unlock()
		if over {
			return s.outcome()
		}
		if credit > 0 {
			return c.writeMessage(k, ITEM, 0, nil, item)
		}
		select {
		case <-changed:
		case <-s.ctx.Done():
			return c.giveUp(k, s.ctx)
		}
	}
}

// End says that no item follows.
func (s *Stream) End() error {
	s.conn.mu.Lock()
	over, answered := s.call.over || s.call.nobody, s.call.answered
	s.conn.mu.Unlock()
	if over {
		return s.outcome()
	}
	if answered {
		return nil
	}
	return s.conn.write(Frame{Type: END, ID: s.call.id})
}

// Receive returns the next item. It returns io.EOF after the last, and then Reply has the reply's body.
func (s *Stream) Receive() ([]byte, error) {
	c, k := s.conn, s.call
	for {
		c.mu.Lock()
		if len(k.items) > 0 {
			item := k.items[0]
			k.items = k.items[1:]
			more := 0
			if k.requests++; k.requests >= window/2 && !k.over {
				more, k.requests = k.requests, 0
			}
			c.mu.Unlock()
			if more > 0 {
				_ = c.welcome(k, uint64(more))
			}
			return item, nil
		}
		over, changed := k.over, k.changed
		c.mu.Unlock()
		if over {
			return nil, s.outcome()
		}
		select {
		case <-changed:
		case <-s.ctx.Done():
			return nil, c.giveUp(k, s.ctx)
		}
	}
}

// Reply waits for the call's end, drops items that nobody received, and returns the reply's body.
func (s *Stream) Reply() ([]byte, error) {
	for {
		if _, err := s.Receive(); errors.Is(err, io.EOF) {
			return s.call.reply, nil
		} else if err != nil {
			return nil, err
		}
	}
}

// Cancel says that nobody waits.
func (s *Stream) Cancel() {
	s.stop()
	_ = s.conn.giveUp(s.call, s.ctx)
}

func (s *Stream) outcome() error {
	s.stop()
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	switch {
	case !s.call.over:
		return fault(Cancelled, "cancelled by this side", Maybe)
	case s.call.err != nil:
		return s.call.err
	default:
		return io.EOF
	}
}

// Ping waits for the server's answer.
func (c *Conn) Ping(ctx context.Context) error {
	answer := make(chan struct{})
	c.mu.Lock()
	id := c.nextPing
	c.nextPing++
	c.pings[id] = answer
	c.mu.Unlock()
	if err := c.write(Frame{Type: PING, ID: id}); err != nil {
		return err
	}
	select {
	case <-answer:
		return nil
	case <-c.ended:
		return c.failure
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Leaving says whether the server has asked this client to call elsewhere, or this client has closed.
func (c *Conn) Leaving() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.draining
}

// Close lets the calls under way end, within the context's time, and closes the connection.
func (c *Conn) Close(ctx context.Context) error {
	c.drain()
	select {
	case <-c.ended:
		return nil
	case <-ctx.Done():
		c.fail(ctx.Err())
		return ctx.Err()
	}
}

// drain ends requests on this connection. GOAWAY waits for requests that have been sent in part only.
func (c *Conn) drain() {
	c.mu.Lock()
	c.draining = true
	say := !c.goneAway && c.sending == 0
	c.goneAway = c.goneAway || say
	c.mu.Unlock()
	if say {
		_ = c.write(Frame{Type: GOAWAY})
	}
	c.closeIfIdle()
}

func (c *Conn) closeIfIdle() {
	c.mu.Lock()
	idle := c.goneAway && len(c.calls) == 0
	c.mu.Unlock()
	if idle {
		c.fail(fault(Unavailable, "connection closed", NotExecuted))
	}
}

// begin takes a slot and sends the request.
func (c *Conn) begin(ctx context.Context, kind Type, method Method, body []byte, metadata []Pair) (*call, error) {
	for _, name := range []string{method.Service, method.Name} {
		if len(name) < 1 || len(name) > 255 {
			return nil, fault(Invalid, fmt.Sprintf("name of %d bytes (expected: 1 to 255)", len(name)), NotExecuted)
		}
	}
	pairs := AppendMetadata(nil, metadata)
	if len(pairs) > MaxMetadata {
		return nil, fault(TooLarge, fmt.Sprintf("metadata of %d bytes (expected: at most %d)", len(pairs), MaxMetadata), NotExecuted)
	}
	c.mu.Lock()
	switch {
	case c.failure != nil:
		defer c.mu.Unlock()
		return nil, c.failure
	case c.draining:
		defer c.mu.Unlock()
		return nil, fault(Unavailable, "the connection is closing", NotExecuted)
	case uint64(len(body)) > uint64(c.server.MaxMessageBytes):
		defer c.mu.Unlock()
		return nil, fault(TooLarge, fmt.Sprintf("%d bytes (expected: at most %d)", len(body), c.server.MaxMessageBytes), NotExecuted)
	}
	var slot uint16
	switch {
	case len(c.free) > 0:
		slot = c.free[len(c.free)-1]
		c.free = c.free[:len(c.free)-1]
	case c.nextSlot < int(c.server.MaxCalls):
		slot = uint16(c.nextSlot)
		c.nextSlot++
	default:
		defer c.mu.Unlock()
		return nil, fault(Overloaded, fmt.Sprintf("%d calls are under way", c.nextSlot), NotExecuted)
	}
	c.generation[slot]++
	if c.generation[slot] == 0 {
		c.generation[slot] = 1
	}
	k := &call{id: uint32(c.generation[slot])<<16 | uint32(slot), slot: slot, changed: make(chan struct{})}
	c.calls[slot] = k
	entry, numbered := c.methods[method]
	c.sending++
	c.mu.Unlock()

	var flags byte
	var prelude []byte
	if numbered {
		prelude = AppendVarint(prelude, uint64(entry.Number))
	} else {
		flags |= NAMED
		prelude = AppendNamed(prelude, method)
	}
	if deadline, has := ctx.Deadline(); has {
		flags |= TIME
		prelude = AppendVarint(prelude, uint64(max(0, time.Until(deadline).Microseconds())))
	}
	if len(pairs) > 0 {
		flags |= METADATA
		prelude = append(AppendVarint(prelude, uint64(len(pairs))), pairs...)
	}
	stop := context.AfterFunc(ctx, func() { _ = c.giveUp(k, ctx) })
	err := c.writeMessage(k, kind, flags, prelude, body)
	stop()

	c.mu.Lock()
	k.whole = true
	c.sending--
	due := c.draining && !c.goneAway && c.sending == 0
	c.mu.Unlock()
	if due {
		c.drain()
	}
	return k, err
}

// giveUp sends CANCEL once, and never before the request. The slot stays taken until the final frame.
func (c *Conn) giveUp(k *call, ctx context.Context) error {
	c.mu.Lock()
	if k.over {
		defer c.mu.Unlock()
		if k.err != nil {
			return k.err
		}
		return fault(Cancelled, "the call had ended", WasExecuted)
	}
	say := !k.nobody && k.begun
	k.nobody = true
	k.change()
	c.mu.Unlock()
	if say {
		_ = c.write(Frame{Type: CANCEL, ID: k.id})
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fault(Deadline, "no reply in time", Maybe)
	}
	return fault(Cancelled, "cancelled by this side", Maybe)
}

// writeMessage sends a message in as many frames as it takes. Frames of other calls may go between them.
func (c *Conn) writeMessage(k *call, kind Type, flags byte, prelude, body []byte) error {
	payload := append(prelude, body...)
	for first := true; ; first = false {
		size := min(len(payload), MaxPayload)
		frame := Frame{Type: PART, ID: k.id, Payload: payload[:size]}
		if first {
			frame.Type, frame.Flags = kind, flags
		}
		if payload = payload[size:]; len(payload) > 0 {
			frame.Flags |= MORE
		}
		c.mu.Lock()
		unwanted := k.over || k.answered || k.nobody && k.begun
		c.mu.Unlock()
		if unwanted {
			return nil
		}
		if err := c.write(frame); err != nil {
			return err
		}
		c.mu.Lock()
		late := !k.begun && k.nobody
		k.begun = true
		c.mu.Unlock()
		if late {
			return c.write(Frame{Type: CANCEL, ID: k.id})
		}
		if len(payload) == 0 {
			return nil
		}
	}
}

func (c *Conn) write(f Frame) error {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	_, err := c.out.Write(AppendFrame(nil, f))
	if err == nil {
		err = c.out.Flush()
	}
	if err != nil {
		return fault(Unavailable, err.Error(), Maybe)
	}
	return nil
}

// read takes frames until the connection ends.
func (c *Conn) read() {
	in := bufio.NewReaderSize(c.socket, 65536)
	preface := make([]byte, len(Preface))
	if _, err := io.ReadFull(in, preface); err != nil {
		c.fail(fault(Unavailable, err.Error(), Maybe))
		return
	}
	if !bytes.Equal(preface[:4], Preface[:4]) || preface[4] < 1 || preface[4] > MaxVersion {
		c.refuse(fmt.Sprintf("preface % x (expected: 52 50 43 58, a version from 1 to %d)", preface, MaxVersion))
		return
	}
	settled := false
	for {
		frame, err := ReadFrame(in)
		c.heard.Store(true)
		if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
			c.fail(fault(Unavailable, "the server closed the connection", Maybe))
			return
		}
		if err != nil {
			c.refuse(err.Error())
			return
		}
		switch frame.Type {
		case SETTINGS:
			settings, err := ReadSettings(frame.Payload)
			if err == nil && settled {
				err = errors.New("SETTINGS (expected: once)")
			}
			if err != nil {
				c.refuse(err.Error())
				return
			}
			settled = true
			c.mu.Lock()
			c.server = settings
			c.mu.Unlock()
		case DICTIONARY:
			select {
			case <-c.ready:
				c.refuse("DICTIONARY after the last (expected: MORE on those before)")
				return
			default:
			}
			c.mu.Lock()
			err := ReadDictionary(frame.Payload, c.methods)
			c.mu.Unlock()
			if err != nil {
				c.refuse(err.Error())
				return
			}
			if frame.Flags&MORE == 0 {
				close(c.ready)
			}
		case PING:
			_ = c.write(Frame{Type: PONG, ID: frame.ID})
		case PONG:
			c.mu.Lock()
			if answer := c.pings[frame.ID]; answer != nil {
				delete(c.pings, frame.ID)
				close(answer)
			}
			c.mu.Unlock()
		case GOAWAY:
			c.drain()
		case ERROR:
			c.mu.Lock()
			wanted := frame.ID == 0 || c.under(frame.ID) != nil
			c.mu.Unlock()
			if !wanted {
				continue
			}
			e, err := ReadError(frame.Payload)
			if err != nil && frame.ID == 0 {
				c.fail(fault(Unavailable, "the server closed the connection", Maybe))
				return
			}
			if err != nil {
				c.refuse(err.Error())
				return
			}
			if frame.ID == 0 {
				c.fail(fault(e.Code, e.Text, Maybe))
				return
			}
			c.end(frame.ID, nil, e)
		case REPLY, ITEM, PART:
			if why := c.take(frame); why != "" {
				c.refuse(why)
				return
			}
		case CREDIT:
			credit, n := binary.Uvarint(frame.Payload)
			c.mu.Lock()
			k := c.under(frame.ID)
			wrong := k != nil && (n <= 0 || credit == 0)
			if k != nil && !wrong {
				k.credit = min(k.credit+min(credit, math.MaxInt64), math.MaxInt64)
				k.change()
			}
			c.mu.Unlock()
			if wrong {
				c.refuse(fmt.Sprintf("CREDIT [% x] (expected: a varint above 0)", frame.Payload))
				return
			}
		}
	}
}

// under finds the call of an id, nil if it is not under way. The caller holds mu.
func (c *Conn) under(id uint32) *call {
	if k := c.calls[uint16(id)]; k != nil && k.id == id {
		return k
	}
	return nil
}

// take adds a frame to the reply or the item of its call. It returns why the connection has to end, or nothing.
func (c *Conn) take(frame Frame) string {
	c.mu.Lock()
	k := c.under(frame.ID)
	if k == nil {
		c.mu.Unlock()
		return ""
	}
	switch {
	case frame.Type == PART && k.partOf == 0:
		c.mu.Unlock()
		return fmt.Sprintf("PART of call %08x (expected: after a frame with MORE)", frame.ID)
	case frame.Type != PART && k.partOf != 0:
		c.mu.Unlock()
		return fmt.Sprintf("type %d of call %08x within another message", frame.Type, frame.ID)
	case frame.Type == ITEM && k.welcome == 0:
		c.mu.Unlock()
		return fmt.Sprintf("ITEM of call %08x without credit", frame.ID)
	case frame.Type != PART:
		k.partOf, k.size = frame.Type, 0
		if frame.Type == ITEM {
			k.welcome--
		} else {
			k.answered = true
		}
	}
	if k.size += uint64(len(frame.Payload)); k.size <= uint64(c.own.MaxMessageBytes) {
		k.parts = append(k.parts, frame.Payload...)
	} else {
		k.parts = nil
		if k.err == nil {
			k.err = fault(TooLarge, fmt.Sprintf("above %d bytes", c.own.MaxMessageBytes), WasExecuted)
			c.mu.Unlock()
			_ = c.giveUp(k, context.Background())
			c.mu.Lock()
		}
	}
	if frame.Flags&MORE != 0 {
		c.mu.Unlock()
		return ""
	}
	whole, kind := k.parts, k.partOf
	k.parts, k.partOf = nil, 0
	if kind == REPLY {
		c.mu.Unlock()
		c.end(frame.ID, whole, nil)
		return ""
	}
	if !k.nobody {
		k.items = append(k.items, whole)
		k.change()
	}
	c.mu.Unlock()
	return ""
}

// end takes a call's final frame and frees its slot.
func (c *Conn) end(id uint32, reply []byte, e *Error) {
	c.mu.Lock()
	if k := c.under(id); k != nil {
		delete(c.calls, k.slot)
		c.free = append(c.free, k.slot)
		k.over, k.reply = true, reply
		if e != nil && k.err == nil {
			k.err = e
		}
		k.change()
	}
	c.mu.Unlock()
	c.closeIfIdle()
}

// refuse ends the connection because the server broke a rule.
func (c *Conn) refuse(why string) {
	_ = c.write(Frame{Type: ERROR, Payload: fault(Protocol, why, Maybe).Payload()})
	c.fail(fault(Protocol, why, Maybe))
}

// lingering is how long what still comes is read and thrown away behind the end of this side's stream.
const lingering = time.Second

// hangUp closes a socket so that what was written last arrives: a socket that is closed with bytes unread is reset.
func hangUp(socket net.Conn) {
	half, isTCP := socket.(*net.TCPConn)
	if !isTCP || half.CloseWrite() != nil || socket.SetReadDeadline(time.Now().Add(lingering)) != nil {
		_ = socket.Close()
		return
	}
	go func() {
		_, _ = io.Copy(io.Discard, socket)
		_ = socket.Close()
	}()
}

// fail ends the connection and all of its calls.
func (c *Conn) fail(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failure != nil {
		return
	}
	c.failure = why
	hangUp(c.socket)
	for _, k := range c.calls {
		k.over = true
		if k.err == nil {
			// whatever has ended the connection
			k.err = fault(Unavailable, why.Error(), Maybe)
		}
		if !k.whole && !k.answered {
			k.err = fault(Unavailable, why.Error(), NotExecuted)
		}
		k.change()
	}
	c.calls = map[uint16]*call{}
	close(c.ended)
}
