package raw

import "fmt"

// Frame is one message, unread.
type Frame struct{ Bytes []byte }

// Codec passes frames through.
type Codec struct{}

// Marshal returns the frame's bytes.
func (Codec) Marshal(v any) ([]byte, error) {
	f, ok := v.(*Frame)
	if !ok {
		return nil, fmt.Errorf("%T is not a frame", v)
	}
	return f.Bytes, nil
}

// Unmarshal fills a frame.
func (Codec) Unmarshal(data []byte, v any) error {
	f, ok := v.(*Frame)
	if !ok {
		return fmt.Errorf("%T is not a frame", v)
	}
	f.Bytes = data
	return nil
}

// Name is what goes on the wire as content-subtype: that of the messages, not of the codec.
func (Codec) Name() string { return "proto" }
