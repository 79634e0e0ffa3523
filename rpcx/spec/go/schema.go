package client

import (
	"fmt"
	"hash/fnv"
	"math"
	"strings"
)

// SchemaType is a type of a method's schema with its members, by number.
type SchemaType struct {
	Kind    string
	Name    string
	Members []SchemaMember
}

// SchemaMember is a component, a parameter, a case or a constant. Was has its former names.
type SchemaMember struct {
	Number uint32
	Name   string
	Type   string
	Was    []string
}

// MaxSchemaText is the bound of each text in an answer to SCHEMA, in bytes.
const MaxSchemaText = 255

// SchemaHash is the number that a dictionary has for these types: first the request, then the reply, then those in them.
func SchemaHash(types []SchemaType) uint64 {
	var text strings.Builder
	for _, t := range types {
		text.WriteString(t.Kind + "{")
		for _, m := range t.Members {
			fmt.Fprintf(&text, "%d %s", m.Number, m.Name)
			if m.Type != "" {
				text.WriteString(" " + m.Type)
			}
			text.WriteString(";")
		}
		text.WriteString("}")
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(text.String()))
	return max(hash.Sum64(), 1)
}

// SchemaQuestion is the payload of a client's SCHEMA, which asks for the types of methods. Their numbers ascend.
func SchemaQuestion(methods ...uint32) []byte {
	var numbers []byte
	for _, number := range methods {
		numbers = AppendVarint(numbers, uint64(number))
	}
	return AppendBytes(nil, 1, numbers)
}

// ReadSchema adds the types of one SCHEMA frame of a server to those of their methods.
func ReadSchema(message []byte, methods map[uint32][]SchemaType) error {
	all, err := ReadFields(message)
	if err != nil {
		return err
	}
	for _, one := range all {
		if one.ID != 1 {
			continue
		}
		fields, err := ReadFields(one.Bytes)
		if err != nil {
			return err
		}
		var number uint64
		var read SchemaType
		for _, field := range fields {
			switch field.ID {
			case 1:
				number = field.Number
			case 2:
				read.Kind, err = schemaText(field.Bytes)
			case 3:
				read.Name, err = schemaText(field.Bytes)
			case 4:
				var member SchemaMember
				if member, err = readSchemaMember(field.Bytes); err == nil {
					read.Members = append(read.Members, member)
				}
			}
			if err != nil {
				return err
			}
		}
		if number < 1 || number > math.MaxInt32 {
			continue
		}
		types := methods[uint32(number)]
		if read.Kind != "" {
			types = append(types, read)
		} else if len(types) > 0 {
			last := &types[len(types)-1]
			last.Members = append(last.Members, read.Members...)
		}
		methods[uint32(number)] = types
	}
	return nil
}

func readSchemaMember(message []byte) (SchemaMember, error) {
	fields, err := ReadFields(message)
	var member SchemaMember
	for _, field := range fields {
		var text string
		switch field.ID {
		case 1:
			member.Number = uint32(min(field.Number, math.MaxUint32))
		case 2:
			member.Name, err = schemaText(field.Bytes)
		case 3:
			member.Type, err = schemaText(field.Bytes)
		case 4:
			text, err = schemaText(field.Bytes)
			member.Was = append(member.Was, text)
		}
		if err != nil {
			break
		}
	}
	return member, err
}

func schemaText(text []byte) (string, error) {
	if len(text) > MaxSchemaText {
		return "", fmt.Errorf("text of %d bytes in a schema (expected: at most %d)", len(text), MaxSchemaText)
	}
	return strings.ToValidUTF8(string(text), "\ufffd"), nil
}
