package main

import (
	"encoding/binary"
	"fmt"
	"math"

	wire "rpcx.dev/spec/client"
)

func parameter(kind string, value []byte) wire.Parameter {
	return wire.Parameter{Type: kind, Value: value}
}

func (p *peer) classicReply() wire.ClassicReply {
	reply, err := wire.ReadClassicReply(p.in, 1<<26)
	if err != nil {
		p.t.differ(err.Error(), "a reply")
	}
	return reply
}

func (p *peer) classicAnswers(id int64, result []byte) {
	reply := p.classicReply()
	same(p.t, "id", reply.ID, id)
	if reply.Error != nil {
		p.t.differ(reply.Error.Error(), "a result")
	}
	same(p.t, "result", string(reply.Result), string(result))
}

func (p *peer) classicErrs(id int64, code wire.Code, executed wire.Executed) {
	reply := p.classicReply()
	same(p.t, "id", reply.ID, id)
	if reply.Error == nil {
		p.t.differ(fmt.Sprintf("result % x", reply.Result), fmt.Sprint("error ", code))
	}
	same(p.t, "code of "+reply.Error.Error(), reply.Error.Code, code)
	same(p.t, "executed of "+reply.Error.Error(), reply.Error.Executed, executed)
}

// classicEnds expects the reply with id 0 that says why the server closes, and the close.
func (p *peer) classicEnds(code wire.Code) {
	for {
		reply := p.classicReply()
		if reply.ID != 0 {
			continue
		}
		if reply.Error == nil {
			p.t.differ(fmt.Sprintf("result % x", reply.Result), fmt.Sprint("error ", code))
		}
		same(p.t, "code of "+reply.Error.Error(), reply.Error.Code, code)
		p.closesSilently()
		return
	}
}

func (p *peer) classicSettled() {
	p.send(wire.AppendClassicRequest(nil, 4711, method("echo"), parameter("", text("still here"))))
	p.classicAnswers(4711, text("still here"))
}

var classicChecks = []check{
	{"classic: the client", "Each message is preceded by its length in 4 bytes. The classic form has no handshake, streams, notices, CANCEL, metadata or TIME, and replies come in any order.", func(t *T) {
		c, err := wire.DialClassic(patient(), t.address)
		holds(t, "connection", err, "one", err == nil)
		defer c.Close()
		got, err := c.Call(patient(), method("echo"), parameter("string", text("Hello")))
		answers(t, "echo", got, err, text("Hello"))
		got, err = c.Call(patient(), method("add"), parameter("int32", number(40)), parameter("int32", number(2)))
		answers(t, "add", got, err, number(42))
		got, err = c.Call(patient(), method("metadata"), parameter("string", text("none")))
		answers(t, "metadata", got, err, text("null"))
		_, err = c.Call(patient(), method("fail"), parameter("string", text("x")))
		fails(t, "fail", err, wire.Failed, wire.WasExecuted)
		_, err = c.Call(patient(), method("none"))
		fails(t, "none", err, wire.NoSuchMethod, wire.NotExecuted)
		_, err = c.Call(patient(), wire.Method{Service: "none", Name: "echo"})
		fails(t, "none", err, wire.NoSuchMethod, wire.NotExecuted)
	}},
	{"classic: streams, time, parameters", "A call has 60 s, or the server's max time if that is less. ... not as many parameters as the method has, or parameters with other numbers | | error 5, not executed | | a name | 255 bytes | error 4 | | a method with a stream | | error 5, not executed", func(t *T) {
		p := plain(t)
		defer p.close()
		p.send(wire.AppendClassicRequest(nil, 1, method("count"), parameter("int32", number(3))))
		p.classicErrs(1, wire.Invalid, wire.NotExecuted)
		p.send(wire.AppendClassicRequest(nil, 2, method("total")))
		p.classicErrs(2, wire.Invalid, wire.NotExecuted)
		p.send(wire.AppendClassicRequest(nil, 3, method("remaining")))
		reply := p.classicReply()
		fields, err := wire.ReadFields(reply.Result)
		holds(t, "remaining", reply, "above 50 s, at most 60 s", err == nil && len(fields) == 1 && fields[0].Number > 50000000 && fields[0].Number <= 60000000)
		for i, parameters := range []int{0, 2, 255} {
			t.step("%d parameters", parameters)
			p.send(wire.AppendClassicRequest(nil, int64(10+i), method("echo"), make([]wire.Parameter, parameters)...))
			p.classicErrs(int64(10+i), wire.Invalid, wire.NotExecuted)
		}
		t.step("a name of 255 bytes, one of 256")
		for i, size := range []int{127, 128, 255, 256, 5000} {
			p.send(wire.AppendClassicRequest(nil, int64(30+i), method(long(size))))
			p.classicErrs(int64(30+i), wire.NoSuchMethod, wire.NotExecuted)
		}
		t.step("a slow call beside a quick one")
		p.send(wire.AppendClassicRequest(nil, 20, method("block")))
		p.classicSettled()
	}},
	{"classic: frames that are none", "parameters | 255 | the connection ends ... a request without id, or with an id that is under way | | the connection ends, because an answer could be taken for that of the other call | | what is not an RPCXRequest | | the connection ends", func(t *T) {
		many := make([]wire.Parameter, 256)
		twice := wire.AppendClassicRequest(wire.AppendClassicRequest(nil, 5, method("block")), 5, method("echo"), parameter("", text("x")))
		for _, c := range []struct {
			name string
			sent []byte
		}{
			{"three bytes that are no message", wire.AppendClassicFrame(nil, []byte{0xff, 0xff, 0xff})},
			{"an id that is cut off", wire.AppendClassicFrame(nil, []byte{0x08})},
			{"a name that is cut off", wire.AppendClassicFrame(nil, []byte{0x08, 1, 0x12, 0x05, 'a'})},
			{"a parameter that is cut off", wire.AppendClassicFrame(nil, []byte{0x08, 1, 0x22, 0x02, 0x12, 0x05})},
			{"an empty frame", wire.AppendClassicFrame(nil, nil)},
			{"no id", wire.AppendClassicFrame(nil, wire.AppendBytes(wire.AppendBytes(nil, 2, "spec"), 3, "remaining"))},
			{"id 0", wire.AppendClassicRequest(nil, 0, method("remaining"))},
			{"an id that is under way", twice},
			{"256 parameters", wire.AppendClassicRequest(nil, 1, method("echo"), many...)},
		} {
			t.one(func() {
				t.step("%s", c.name)
				p := plain(t)
				p.send(c.sent)
				p.classicEnds(wire.Protocol)
			})
		}
	}},
	{"classic: types are not read", "type is text for people, and is not read.", func(t *T) {
		p := plain(t)
		defer p.close()
		for i, kind := range []string{"", "java.lang.Runtime", "int", long(1000)} {
			p.send(wire.AppendClassicRequest(nil, int64(i+1), method("echo"), parameter(kind, text("x"))))
			p.classicAnswers(int64(i+1), text("x"))
		}
	}},
	{"classic: any id", "int64 id = 1; // random; no other call has it until its reply has come", func(t *T) {
		p := plain(t)
		defer p.close()
		for _, id := range []int64{1, -1, math.MaxInt64, math.MinInt64} {
			t.step("id %d", id)
			p.send(wire.AppendClassicRequest(nil, id, method("echo"), parameter("string", text("x"))))
			p.classicAnswers(id, text("x"))
		}
	}},
	{"classic: byte by byte, and all at once", "Each message is preceded by its length in 4 bytes. ... replies come in any order.", func(t *T) {
		p := plain(t)
		defer p.close()
		for _, b := range wire.AppendClassicRequest(nil, 5, method("echo"), parameter("string", text("slow"))) {
			p.send([]byte{b})
		}
		p.classicAnswers(5, text("slow"))
		var content []byte
		missing := map[int64]bool{}
		for i := int64(100); i < 200; i++ {
			content = wire.AppendClassicRequest(content, i, method("echo"), parameter("string", text(fmt.Sprint(i))))
			missing[i] = true
		}
		p.send(content)
		for len(missing) > 0 {
			reply := p.classicReply()
			holds(t, "reply", reply.ID, "one of each call", missing[reply.ID])
			delete(missing, reply.ID)
			same(t, "result", string(reply.Result), string(text(fmt.Sprint(reply.ID))))
		}
	}},
	{"classic: fields in any order, unknown, twice", "Fields may come in any order. ... An unknown field is passed over ... If a field other than parameters comes more than once, the last one counts.", func(t *T) {
		p := plain(t)
		defer p.close()
		message := wire.AppendNumber(nil, 1, 7)
		message = wire.AppendBytes(message, 2, "none")
		message = wire.AppendBytes(message, 2, "spec")
		message = wire.AppendBytes(message, 9, "unknown")
		message = wire.AppendBytes(message, 3, "echo")
		value := wire.AppendNumber(wire.AppendBytes(nil, 2, text("x")), 7, 1)
		message = wire.AppendBytes(message, 4, value)
		message = wire.AppendNumber(message, 1000, math.MaxUint64)
		message = wire.AppendNumber(message, 1, 9)
		p.send(wire.AppendClassicFrame(nil, message))
		p.classicAnswers(9, text("x"))
	}},
	{"classic: a value that cannot be read", "5 | invalid: cannot be read, or breaks a rule of the service ... 3, 4, 5 and 8 come with 1", func(t *T) {
		p := plain(t)
		defer p.close()
		for i, value := range [][]byte{{0x0a, 0x05, 'a'}, {0xff}, {0x08, 0x01}} {
			t.step("value % x", value)
			p.send(wire.AppendClassicRequest(nil, int64(i+1), method("echo"), parameter("string", value)))
			p.classicErrs(int64(i+1), wire.Invalid, wire.NotExecuted)
		}
		p.classicSettled()
	}},
	{"classic: a frame of exactly the limit", "a frame that a server takes | the server's max message size ... Above 4194304 bytes behind the length nothing of the frame is read: the server sends a reply with id 0 and error 10, and the connection ends", func(t *T) {
		q := native(t)
		limit := int(q.server.MaxMessageBytes)
		q.close()
		p := plain(t)
		defer p.close()
		empty := len(wire.AppendClassicRequest(nil, 5, method("echo"), parameter("string", text(long(limit-100))))) - 4
		value := text(long(limit - 100 + limit - empty))
		request := wire.AppendClassicRequest(nil, 5, method("echo"), parameter("string", value))
		same(t, "bytes of frame", len(request)-4, limit)
		p.send(request)
		p.classicAnswers(5, value)
		t.step("one above")
		head := binary.BigEndian.AppendUint32(nil, uint32(limit+1))
		p.send(head)
		p.classicEnds(wire.Protocol)
	}},
	{"classic: lengths that are none", "Above 4194304 bytes behind the length nothing of the frame is read: the server sends a reply with id 0 and error 10, and the connection ends ... a length that is negative | | the connection ends", func(t *T) {
		for _, length := range []uint32{math.MaxUint32, 1 << 31, math.MaxInt32} {
			t.step("length %08x", length)
			p := plain(t)
			p.send(binary.BigEndian.AppendUint32(nil, length))
			p.classicEnds(wire.Protocol)
		}
	}},
}
