package raw

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/apipb"
)

// What is appended merges into what is there, and nothing else is lost: seen with protobuf's own decoder, on
// a message with a nested one (Api.source_context.file_name) and fields that we know nothing of.
func TestAppendedFieldsMerge(t *testing.T) {
	before := &apipb.Api{Name: "kept", Version: "v1", Methods: []*apipb.Method{{Name: "m"}}}
	text, err := proto.Marshal(before)
	if err != nil {
		t.Fatal(err)
	}
	const sourceContext, fileName = 5, 1
	after := &apipb.Api{}
	long := Message(text).With("first", sourceContext, fileName).With("last", sourceContext, fileName).With("", 1)
	if err := proto.Unmarshal(long, after); err != nil {
		t.Fatal(err)
	}
	if after.GetSourceContext().GetFileName() != "last" || after.GetName() != "kept" || len(after.GetMethods()) != 1 {
		t.Errorf("%v", after)
	}
	if long.At(sourceContext).Text(fileName) != "last" || long.Text(1) != "kept" || len(long.All(2)) != 1 {
		t.Error("our own reading differs from protobuf's")
	}
}

func TestWithLeavesTheOriginalAlone(t *testing.T) {
	original := make(Message, 0, 100)
	a, b := original.With("a", 1), original.With("b", 1)
	if a.Text(1) != "a" || b.Text(1) != "b" {
		t.Errorf("%q %q", a.Text(1), b.Text(1))
	}
}

func FuzzReading(f *testing.F) {
	f.Add([]byte(Message(nil).With("x", 2, 15, 1, 6)))
	f.Add([]byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(_ *testing.T, bytes []byte) {
		m := Message(bytes)
		m.At(2, 15, 1).Text(6)
		m.Labels(7)
		m.Number(6)
	})
}
