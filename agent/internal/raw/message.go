// Package raw carries gRPC messages as bytes, and reads and extends the few protobuf fields that somebody
// wants of them.
package raw

import (
	"google.golang.org/protobuf/encoding/protowire"
)

// Message is a protobuf message. Of a field that occurs twice the last one counts. Reading stops at the first
// malformed field: what comes after it is the receiver's to judge.
type Message []byte

// each calls visit for every field; wire types other than varint and bytes are passed over.
func (m Message) each(visit func(number protowire.Number, bytes []byte, varint uint64)) {
	rest := []byte(m)
	for len(rest) > 0 {
		number, kind, n := protowire.ConsumeTag(rest)
		if n < 0 {
			return
		}
		rest = rest[n:]
		switch kind {
		case protowire.BytesType:
			value, n := protowire.ConsumeBytes(rest)
			if n < 0 {
				return
			}
			visit(number, value, 0)
			rest = rest[n:]
		case protowire.VarintType:
			value, n := protowire.ConsumeVarint(rest)
			if n < 0 {
				return
			}
			visit(number, nil, value)
			rest = rest[n:]
		default:
			n := protowire.ConsumeFieldValue(number, kind, rest)
			if n < 0 {
				return
			}
			rest = rest[n:]
		}
	}
}

// At follows a path of message fields. Repeated occurrences of a message merge, so they are put one behind
// the other.
func (m Message) At(path ...protowire.Number) Message {
	for _, want := range path {
		var inner Message
		m.each(func(number protowire.Number, bytes []byte, _ uint64) {
			if number == want {
				inner = append(inner, bytes...)
			}
		})
		m = inner
	}
	return m
}

// All returns every occurrence of a repeated message field.
func (m Message) All(want protowire.Number) []Message {
	var list []Message
	m.each(func(number protowire.Number, bytes []byte, _ uint64) {
		if number == want {
			list = append(list, bytes)
		}
	})
	return list
}

// Text reads a text field; empty where it is missing.
func (m Message) Text(want protowire.Number) string {
	text := ""
	m.each(func(number protowire.Number, bytes []byte, _ uint64) {
		if number == want {
			text = string(bytes)
		}
	})
	return text
}

// Number reads a varint field; 0 where it is missing.
func (m Message) Number(want protowire.Number) int64 {
	var n int64
	m.each(func(number protowire.Number, _ []byte, varint uint64) {
		if number == want {
			n = int64(varint)
		}
	})
	return n
}

// Labels reads a map<string, string>.
func (m Message) Labels(want protowire.Number) map[string]string {
	labels := map[string]string{}
	for _, entry := range m.All(want) {
		labels[entry.Text(1)] = entry.Text(2)
	}
	return labels
}

// With appends a text field at the end of a path of messages. An empty text changes nothing.
func (m Message) With(text string, path ...protowire.Number) Message {
	if text == "" {
		return m
	}
	inner := []byte(text)
	for i := len(path) - 1; i >= 0; i-- {
		outer := protowire.AppendTag(nil, path[i], protowire.BytesType)
		inner = protowire.AppendBytes(outer, inner)
	}
	return append(m[:len(m):len(m)], inner...)
}
