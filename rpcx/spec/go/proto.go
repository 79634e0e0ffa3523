package client

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Wire types of Protobuf. Groups (3 and 4) are not used by RPCX.
const (
	wireVarint = 0
	wireFixed8 = 1
	wireBytes  = 2
	wireFixed4 = 5
)

var errTruncated = errors.New("message ends within a field")

// AppendVarint appends number in Protobuf's base-128 form, in as few bytes as it takes.
func AppendVarint(to []byte, number uint64) []byte {
	return binary.AppendUvarint(to, number)
}

// AppendNumber appends a varint field.
func AppendNumber(to []byte, field int, number uint64) []byte {
	return AppendVarint(AppendVarint(to, uint64(field)<<3|wireVarint), number)
}

// AppendBytes appends a field of bytes, text or a message.
func AppendBytes[T []byte | string](to []byte, field int, value T) []byte {
	to = AppendVarint(to, uint64(field)<<3|wireBytes)
	return append(AppendVarint(to, uint64(len(value))), value...)
}

// Field is one field of a message that was read. Number holds a varint or a fixed-width number, Bytes the rest.
type Field struct {
	ID     int
	Number uint64
	Bytes  []byte
}

// ReadFields reads all fields of a message. The slices in the result share the message's memory.
func ReadFields(message []byte) ([]Field, error) {
	var fields []Field
	for len(message) > 0 {
		tag, n := binary.Uvarint(message)
		if n <= 0 || tag>>3 == 0 || tag > math.MaxUint32 {
			return nil, fmt.Errorf("tag in % x (expected: a varint of 32 bits, field above 0)", message[:min(len(message), 10)])
		}
		message = message[n:]
		field := Field{ID: int(tag >> 3)}
		switch tag & 7 {
		case wireVarint:
			if field.Number, n = binary.Uvarint(message); n <= 0 {
				return nil, errTruncated
			}
		case wireFixed8:
			if n = 8; len(message) < n {
				return nil, errTruncated
			}
			field.Number = binary.LittleEndian.Uint64(message)
		case wireFixed4:
			if n = 4; len(message) < n {
				return nil, errTruncated
			}
			field.Number = uint64(binary.LittleEndian.Uint32(message))
		case wireBytes:
			size, head := binary.Uvarint(message)
			if head <= 0 || size > uint64(len(message)-head) {
				return nil, errTruncated
			}
			field.Bytes = message[head : head+int(size)]
			n = head + int(size)
		default:
			return nil, fmt.Errorf("wire type %d of field %d (expected: 0, 1, 2 or 5)", tag&7, field.ID)
		}
		message = message[n:]
		fields = append(fields, field)
	}
	return fields, nil
}
