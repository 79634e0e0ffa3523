package client

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
)

// Type is the low half of a frame's head.
type Type byte

// Types of frames, by the page's table.
const (
	SETTINGS   Type = 1
	DICTIONARY Type = 2
	REQUEST    Type = 3
	NOTICE     Type = 4
	PART       Type = 5
	REPLY      Type = 6
	ERROR      Type = 7
	CANCEL     Type = 8
	ITEM       Type = 9
	END        Type = 10
	CREDIT     Type = 11
	GOAWAY     Type = 12
	PING       Type = 13
	PONG       Type = 14
	SCHEMA     Type = 15
)

// Flags are the high half of a frame's head.
const (
	MORE     byte = 0x10
	NAMED    byte = 0x20
	METADATA byte = 0x40
	TIME     byte = 0x80
)

// Bounds of a frame's length, which counts head, call id and payload.
const (
	MinFrame   = 5
	MaxFrame   = 16384
	MaxPayload = MaxFrame - MinFrame
)

// Frame is what stands behind a length.
type Frame struct {
	Type    Type
	Flags   byte
	ID      uint32
	Payload []byte
}

func (f Frame) String() string {
	payload := fmt.Sprintf("% x", f.Payload[:min(len(f.Payload), 64)])
	if len(f.Payload) > 64 {
		payload += fmt.Sprintf(" … %d bytes", len(f.Payload))
	}
	return fmt.Sprintf("type %d flags %02x id %08x payload [%s]", f.Type, f.Flags, f.ID, payload)
}

// AppendFrame appends the frame with its length. It does not check the length, so that checks can break the rule.
func AppendFrame(to []byte, f Frame) []byte {
	to = AppendVarint(to, uint64(MinFrame+len(f.Payload)))
	to = append(to, byte(f.Type)|f.Flags)
	to = binary.BigEndian.AppendUint32(to, f.ID)
	return append(to, f.Payload...)
}

// ReadFrame reads one frame. Its payload is its own memory.
func ReadFrame(in io.Reader) (Frame, error) {
	length, err := readLength(in)
	if err != nil {
		return Frame{}, err
	}
	content := make([]byte, length)
	if _, err := io.ReadFull(in, content); err != nil {
		return Frame{}, fmt.Errorf("frame of length %d: %w", length, err)
	}
	return Frame{
		Type:    Type(content[0] & 0x0f),
		Flags:   content[0] & 0xf0,
		ID:      binary.BigEndian.Uint32(content[1:]),
		Payload: content[MinFrame:],
	}, nil
}

func readLength(in io.Reader) (int, error) {
	length := 0
	var one [1]byte
	for shift := 0; shift < 21; shift += 7 {
		if _, err := io.ReadFull(in, one[:]); err != nil {
			if shift > 0 && errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return 0, err
		}
		length |= int(one[0]&0x7f) << shift
		if one[0] < 0x80 {
			if length < MinFrame || length > MaxFrame || shift > 0 && one[0] == 0 {
				break
			}
			return length, nil
		}
	}
	return 0, fmt.Errorf("length of a frame %d (expected: %d to %d, in as few bytes as it takes)", length, MinFrame, MaxFrame)
}

// Code is an error's number on the wire.
type Code uint32

// Codes of errors.
const (
	Cancelled       Code = 1
	Deadline        Code = 2
	Unavailable     Code = 3
	NoSuchMethod    Code = 4
	Invalid         Code = 5
	Failed          Code = 6
	TooLarge        Code = 7
	Overloaded      Code = 8
	Unauthenticated Code = 9
	Protocol        Code = 10
)

// Executed says whether the server began to execute the call.
type Executed uint32

// What an error says about execution. Any other number means Maybe.
const (
	NotExecuted Executed = 1
	WasExecuted Executed = 2
	Maybe       Executed = 3
)

// Detail is a value that an error carries for programs. Message is the value's Protobuf form.
type Detail struct {
	Name     string
	Message  []byte
	Declared bool // the exception with which the handler has failed, and which its method declares
}

// Bounds of an error's details: how many, and the bytes of all names and messages together.
const (
	MaxDetails     = 16
	MaxDetailBytes = 8192
)

// Error is an ERROR frame's payload, or a failure that the client found itself.
type Error struct {
	Code     Code
	Text     string
	Executed Executed
	Details  []Detail
}

// fault is an error without details.
func fault(code Code, text string, executed Executed) *Error {
	return &Error{Code: code, Text: text, Executed: executed}
}

func (e *Error) Error() string {
	return fmt.Sprintf("error %d, executed %d: %s", e.Code, e.Executed, e.Text)
}

// Payload is the error's Protobuf form.
func (e *Error) Payload() []byte {
	to := AppendNumber(nil, 1, uint64(e.Code))
	to = AppendBytes(to, 2, e.Text)
	to = AppendNumber(to, 3, uint64(e.Executed))
	for _, detail := range e.Details {
		encoded := AppendBytes(AppendBytes(nil, 1, detail.Name), 2, detail.Message)
		if detail.Declared {
			encoded = AppendNumber(encoded, 3, 1)
		}
		to = AppendBytes(to, 4, encoded)
	}
	return to
}

// readDetail reads a detail. Its message shares the memory of the bytes.
func readDetail(message []byte) (Detail, error) {
	fields, err := ReadFields(message)
	var detail Detail
	for _, field := range fields {
		switch field.ID {
		case 1:
			detail.Name = strings.ToValidUTF8(string(field.Bytes), "\ufffd")
		case 2:
			detail.Message = field.Bytes
		case 3:
			detail.Declared = field.Number != 0
		}
	}
	return detail, err
}

// ReadError reads an ERROR frame's payload. A code that is not listed reads as Failed, an unknown executed as Maybe.
// Details beyond the bounds, without a name or with a long one are passed over.
func ReadError(payload []byte) (*Error, error) {
	fields, err := ReadFields(payload)
	if err != nil {
		return nil, err
	}
	e := &Error{Code: Failed, Executed: Maybe}
	left := MaxDetailBytes
	for _, field := range fields {
		switch field.ID {
		case 4:
			detail, err := readDetail(field.Bytes)
			if err != nil {
				return nil, err
			}
			size := len(detail.Name) + len(detail.Message)
			if len(e.Details) < MaxDetails && size <= left && len(detail.Name) >= 1 && len(detail.Name) <= 255 {
				e.Details = append(e.Details, detail)
				left -= size
			}
		case 1:
			e.Code = Code(min(field.Number, math.MaxUint32))
		case 2:
			e.Text = strings.ToValidUTF8(string(field.Bytes), "\ufffd")
		case 3:
			e.Executed = Executed(min(field.Number, math.MaxUint32))
		}
	}
	if e.Code < Cancelled || e.Code > Protocol {
		e.Code = Failed
	}
	if e.Executed != NotExecuted && e.Executed != WasExecuted {
		e.Executed = Maybe
	}
	return e, nil
}

// Settings are what a side says of itself, once. Zero means the standard value.
type Settings struct {
	MaxMessageBytes uint32
	MaxCalls        uint32
	DefaultMicros   uint64
}

// StandardSettings hold until a side has said otherwise.
var StandardSettings = Settings{MaxMessageBytes: 4194304, MaxCalls: 4096, DefaultMicros: 10000000}

// MaxMicros is the longest time of a call; a longer one is as good.
const MaxMicros = 1 << 50

// Payload is the settings' Protobuf form.
func (s Settings) Payload() []byte {
	var to []byte
	if s.MaxMessageBytes != 0 {
		to = AppendNumber(to, 1, uint64(s.MaxMessageBytes))
	}
	if s.MaxCalls != 0 {
		to = AppendNumber(to, 2, uint64(s.MaxCalls))
	}
	if s.DefaultMicros != 0 {
		to = AppendNumber(to, 3, s.DefaultMicros)
	}
	return to
}

// ReadSettings reads a SETTINGS frame's payload over the standard values.
func ReadSettings(payload []byte) (Settings, error) {
	s := StandardSettings
	fields, err := ReadFields(payload)
	if err != nil {
		return s, err
	}
	for _, field := range fields {
		switch field.ID {
		case 1:
			s.MaxMessageBytes = uint32(min(field.Number, math.MaxInt32))
		case 2:
			s.MaxCalls = uint32(min(field.Number, uint64(StandardSettings.MaxCalls)))
		case 3:
			s.DefaultMicros = min(field.Number, MaxMicros)
		}
	}
	return s.orStandard(), nil
}

// orStandard is these settings with the standard value for each 0, which is as good as unsaid.
func (s Settings) orStandard() Settings {
	if s.MaxMessageBytes == 0 {
		s.MaxMessageBytes = StandardSettings.MaxMessageBytes
	}
	if s.MaxCalls == 0 {
		s.MaxCalls = StandardSettings.MaxCalls
	}
	if s.DefaultMicros == 0 {
		s.DefaultMicros = StandardSettings.DefaultMicros
	}
	return s
}

// Method is the published name of a service's method.
type Method struct {
	Service string
	Name    string
}

// Entry is a dictionary's line: the number of a method on this connection, how its bodies are framed, and the hash of its
// schema. Shape and Schema are 0 where the server says nothing.
type Entry struct {
	Number uint32
	Shape  uint32
	Schema uint64
}

// Differs says whether two shapes tell that one side would misread the other's bodies.
func Differs(one, other uint32) bool {
	if one == 0 || other == 0 {
		return false
	}
	if (one^other)&(1<<29|1<<30) != 0 {
		return true
	}
	for shift := 0; shift < 28; shift += 4 {
		a, b := one>>shift&15, other>>shift&15
		if a != 0 && b != 0 && a != b {
			return true
		}
	}
	// fields wherever they stand are no message of their own
	const first, others = 15, 1<<24 - 1<<4
	return one&first == first && other&first == 0 && other&others != 0 ||
		other&first == first && one&first == 0 && one&others != 0
}

// ReadDictionary adds the entries of one DICTIONARY frame to methods.
func ReadDictionary(message []byte, methods map[Method]Entry) error {
	entries, err := ReadFields(message)
	if err != nil {
		return err
	}
	for _, line := range entries {
		if line.ID != 1 {
			continue
		}
		fields, err := ReadFields(line.Bytes)
		if err != nil {
			return err
		}
		var method Method
		var number uint64
		var entry Entry
		for _, field := range fields {
			switch field.ID {
			case 1:
				number = field.Number
			case 2:
				method.Service = strings.ToValidUTF8(string(field.Bytes), "\ufffd")
			case 3:
				method.Name = strings.ToValidUTF8(string(field.Bytes), "\ufffd")
			case 5:
				entry.Shape = uint32(field.Number)
			case 6:
				entry.Schema = field.Number
			}
		}
		if number < 1 || number > math.MaxInt32 {
			return fmt.Errorf("number %d of %v (expected: 1 to 2147483647)", number, method)
		}
		entry.Number = uint32(number)
		methods[method] = entry
	}
	return nil
}

// Pair is an entry of metadata.
type Pair struct {
	Name  string
	Value string
}

// MaxMetadata is the bound of all entries of a request together.
const MaxMetadata = 8192

// AppendMetadata appends the entries without their length.
func AppendMetadata(to []byte, pairs []Pair) []byte {
	for _, pair := range pairs {
		entry := AppendBytes(nil, 1, pair.Name)
		to = AppendBytes(to, 1, AppendBytes(entry, 2, pair.Value))
	}
	return to
}

// AppendNamed appends a method by name, as the prelude of a request with NAMED has it.
func AppendNamed(to []byte, method Method) []byte {
	to = append(append(to, byte(len(method.Service))), method.Service...)
	return append(append(to, byte(len(method.Name))), method.Name...)
}

// Preface is what each side sends first: the magic word, version 1, no features.
var Preface = []byte{0x52, 0x50, 0x43, 0x58, 1, 0, 0, 0}

// MaxVersion is the highest that there will be: a higher number could be the begin of a text.
const MaxVersion = 8
