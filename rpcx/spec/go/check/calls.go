package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	wire "rpcx.dev/spec/client"
)

func dial(t *T, own wire.Settings) *wire.Conn {
	c, err := wire.Dial(patient(), t.address, own)
	if err != nil {
		t.differ(err.Error(), "a connection")
	}
	return c
}

// patient is a context that ends when a check hangs. The process ends soon after, so nothing is given back.
func patient() context.Context {
	ctx, stop := context.WithTimeout(context.Background(), patience)
	_ = stop
	return ctx
}

// fails compares an error with a code and with what it says about execution; 0 stands for anything.
func fails(t *T, what string, err error, code wire.Code, executed wire.Executed) {
	t.count++
	var e *wire.Error
	if !errors.As(err, &e) || e.Code != code || executed != 0 && e.Executed != executed {
		t.differ(fmt.Sprintf("%s: %v", what, err), fmt.Sprintf("error %d, executed %d", code, executed))
	}
}

func answers(t *T, what string, got []byte, err error, expected []byte) {
	t.count++
	if err != nil {
		t.differ(what+": "+err.Error(), fmt.Sprintf("% x", expected[:min(len(expected), 32)]))
	}
	if string(got) != string(expected) {
		t.differ(fmt.Sprintf("%s: %d bytes, % x", what, len(got), got[:min(len(got), 32)]),
			fmt.Sprintf("%d bytes, % x", len(expected), expected[:min(len(expected), 32)]))
	}
}

// clientChecks use the client as a caller would.
var clientChecks = []check{
	{"client: calls by name and by number", "A client calls by name until it has the number.", func(t *T) {
		c := dial(t, wire.Settings{})
		early, err := c.Call(patient(), method("echo"), text("before the dictionary"))
		answers(t, "early", early, err, text("before the dictionary"))
		_, methods, err := c.Ready(patient())
		holds(t, "dictionary", err, "the server's", err == nil && methods[method("echo")].Number > 0)
		late, err := c.Call(patient(), method("echo"), text("by number"))
		answers(t, "late", late, err, text("by number"))
		sum, err := c.Call(patient(), method("add"), append(number(40), wire.AppendNumber(nil, 2, 2)...))
		answers(t, "add", sum, err, number(42))
		value, err := c.Call(patient(), method("metadata"), text("tenant"), wire.Pair{Name: "tenant", Value: "a"})
		answers(t, "metadata", value, err, text("a"))
		_, err = c.Call(patient(), method("none"), nil)
		fails(t, "no method", err, wire.NoSuchMethod, wire.NotExecuted)
		_, err = c.Call(patient(), method("fail"), text("x"))
		fails(t, "handler", err, wire.Failed, wire.WasExecuted)
		holds(t, "notice", c.Notice(patient(), method("echo"), text("x")), "taken", c.Notice(patient(), method("echo"), text("x")) == nil)
		holds(t, "ping", nil, "an answer", c.Ping(patient()) == nil)
		err = c.Close(patient())
		holds(t, "close", err, "the connection's end", err == nil)
	}},
	{"client: large messages and small ones at once", "Frames of other calls may come between them, and should, so that small messages need not wait for large ones.", func(t *T) {
		c := dial(t, wire.Settings{})
		defer c.Close(patient())
		errs := make(chan string, 64)
		var all sync.WaitGroup
		call := func(size int) {
			defer all.Done()
			value := long(size)
			got, err := c.Call(patient(), method("echo"), text(value))
			// Protobuf leaves out what is empty, or writes it.
			if err != nil || string(got) != string(text(value)) && (size > 0 || len(got) > 0) {
				errs <- fmt.Sprintf("echo of %d bytes: %d bytes, %v", size, len(got), err)
			}
		}
		for i := 0; i < 32; i++ {
			all.Add(2)
			go call(40000 * (i % 6))
			go call(i)
		}
		all.Wait()
		t.count += 64
		select {
		case different := <-errs:
			t.differ(different, "its text")
		default:
		}
	}},
	{"client: deadlines and cancelling", "CANCEL says that nobody waits for the call.", func(t *T) {
		c := dial(t, wire.Settings{})
		defer c.Close(patient())
		short, stop := context.WithTimeout(context.Background(), 30*time.Millisecond)
		defer stop()
		_, err := c.Call(short, method("block"), nil)
		fails(t, "block within 30 ms", err, wire.Deadline, 0)
		nobody, cancel := context.WithCancel(context.Background())
		time.AfterFunc(10*time.Millisecond, cancel)
		_, err = c.Call(nobody, method("block"), nil)
		fails(t, "block, cancelled", err, wire.Cancelled, 0)
		for i := 0; i < 50; i++ {
			nobody, cancel := context.WithCancel(context.Background())
			go cancel()
			_, _ = c.Call(nobody, method("echo"), text(long(50000)))
		}
		got, err := c.Call(patient(), method("echo"), text("after"))
		answers(t, "after", got, err, text("after"))
	}},
	{"client: streams", "A method whose result is a stream sends an ITEM for each item, never more than the client's CREDIT for this call adds up to, and ends with an empty REPLY, or with ERROR. ... The client sends an ITEM for each item within the server's CREDIT, and then END.", func(t *T) {
		c := dial(t, wire.Settings{})
		defer c.Close(patient())
		down, err := c.Open(patient(), method("count"), number(1000))
		holds(t, "count", err, "a stream", err == nil)
		items := 0
		for ; ; items++ {
			item, err := down.Receive()
			if errors.Is(err, io.EOF) {
				break
			}
			answers(t, "item", item, err, text(fmt.Sprint("item ", items)))
		}
		same(t, "items", items, 1000)
		up, err := c.Open(patient(), method("total"), nil)
		holds(t, "total", err, "a stream", err == nil)
		sum := 0
		for i := 1; i <= 500; i++ {
			sum += i
			if err := up.Send(number(i)); err != nil {
				t.differ(err.Error(), "an item taken")
			}
		}
		holds(t, "END", up.End(), "sent", true)
		got, err := up.Reply()
		answers(t, "total", got, err, number(sum))
		t.step("a reader that stops")
		down, err = c.Open(patient(), method("count"), number(1000000))
		holds(t, "count", err, "a stream", err == nil)
		for i := 0; i < 30; i++ {
			item, err := down.Receive()
			answers(t, "item", item, err, text(fmt.Sprint("item ", i)))
		}
		down.Cancel()
		again, err := c.Call(patient(), method("echo"), text("after"))
		answers(t, "after", again, err, text("after"))
	}},
}
