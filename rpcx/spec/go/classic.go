package client

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand"
	"net"
	"sync"
	"time"
)

// Parameter is one parameter of a classic request. Type is text for people.
type Parameter struct {
	Type  string
	Value []byte
}

// AppendClassicRequest appends an RPCXRequest behind its length.
func AppendClassicRequest(to []byte, id int64, method Method, parameters ...Parameter) []byte {
	message := AppendNumber(nil, 1, uint64(id))
	message = AppendBytes(message, 2, method.Service)
	message = AppendBytes(message, 3, method.Name)
	for _, parameter := range parameters {
		field := AppendBytes(nil, 1, parameter.Type)
		message = AppendBytes(message, 4, AppendBytes(field, 2, parameter.Value))
	}
	return AppendClassicFrame(to, message)
}

// AppendClassicFrame appends a message behind its length.
func AppendClassicFrame(to, message []byte) []byte {
	return append(binary.BigEndian.AppendUint32(to, uint32(len(message))), message...)
}

// ClassicReply is an RPCXReply. Error is nil if the call has a result.
type ClassicReply struct {
	ID     int64
	Result []byte
	Error  *Error
}

// ReadClassicReply reads one reply of at most limit bytes.
func ReadClassicReply(in io.Reader, limit uint32) (ClassicReply, error) {
	var head [4]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return ClassicReply{}, err
	}
	length := binary.BigEndian.Uint32(head[:])
	if length > limit {
		return ClassicReply{}, fmt.Errorf("reply of %d bytes (expected: at most %d)", length, limit)
	}
	message := make([]byte, length)
	if _, err := io.ReadFull(in, message); err != nil {
		return ClassicReply{}, err
	}
	fields, err := ReadFields(message)
	if err != nil {
		return ClassicReply{}, err
	}
	var reply ClassicReply
	for _, field := range fields {
		switch field.ID {
		case 1:
			reply.ID = int64(field.Number)
		case 2:
			reply.Result = field.Bytes
		case 3:
			if reply.Error, err = ReadError(field.Bytes); err != nil {
				return ClassicReply{}, err
			}
		}
	}
	return reply, nil
}

// MaxClassicFrame is the largest frame that a client takes, without its length.
const MaxClassicFrame = 4194304

// Classic is one connection of the classic form.
type Classic struct {
	socket net.Conn

	mu      sync.Mutex // guards writes and the fields below
	calls   map[int64]chan ClassicReply
	failure error
}

// DialClassic connects. The classic form has no handshake.
func DialClassic(ctx context.Context, address string) (*Classic, error) {
	var dialer net.Dialer
	socket, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fault(Unavailable, err.Error(), NotExecuted)
	}
	c := &Classic{socket: socket, calls: map[int64]chan ClassicReply{}}
	go c.read()
	return c, nil
}

// Call sends a request and waits for its result's message. The server is not told when the caller gives up.
func (c *Classic) Call(ctx context.Context, method Method, parameters ...Parameter) ([]byte, error) {
	if _, has := ctx.Deadline(); !has {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, time.Duration(StandardSettings.DefaultMicros)*time.Microsecond)
		defer stop()
	}
	answer := make(chan ClassicReply, 1)
	c.mu.Lock()
	if c.failure != nil {
		defer c.mu.Unlock()
		return nil, c.failure
	}
	id := rand.Int63()
	for id == 0 || c.calls[id] != nil {
		id = rand.Int63()
	}
	c.calls[id] = answer
	_, err := c.socket.Write(AppendClassicRequest(nil, id, method, parameters...))
	c.mu.Unlock()
	if err != nil {
		return nil, fault(Unavailable, err.Error(), Maybe)
	}
	select {
	case reply := <-answer:
		if reply.Error != nil {
			return nil, reply.Error
		}
		return reply.Result, nil
	case <-ctx.Done():
		c.mu.Lock()
		delete(c.calls, id)
		c.mu.Unlock()
		return nil, fault(Deadline, "no reply in time", Maybe)
	}
}

// Close ends the connection and its calls.
func (c *Classic) Close() { hangUp(c.socket) }

func (c *Classic) read() {
	in := bufio.NewReader(c.socket)
	for {
		reply, err := ReadClassicReply(in, MaxClassicFrame)
		why := fault(Unavailable, "the server closed the connection", Maybe)
		if err != nil {
			why.Text = err.Error()
		} else if reply.ID == 0 && reply.Error != nil {
			why = reply.Error
		}
		c.mu.Lock()
		if err != nil || reply.ID == 0 {
			c.failure = why
			_ = c.socket.Close()
			for id, answer := range c.calls {
				answer <- ClassicReply{ID: id, Error: why}
			}
			c.calls = map[int64]chan ClassicReply{}
			c.mu.Unlock()
			return
		}
		answer := c.calls[reply.ID]
		delete(c.calls, reply.ID)
		c.mu.Unlock()
		if answer != nil {
			answer <- reply
		}
	}
}
