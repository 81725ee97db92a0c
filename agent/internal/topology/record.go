package topology

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// recorder notes every file that is read through it. A recording thus holds what Read looks at, and nothing
// else of the machine it was made on (no serial numbers, no addresses).
type recorder struct {
	Tree
	files Recording
}

func (r recorder) ReadFile(path string) (string, error) {
	content, err := r.Tree.ReadFile(path)
	if err == nil {
		r.files[path] = content
		if strings.HasSuffix(path, "/meminfo") {
			r.files[path] = totalLine(content) // the other lines change by the second and are never read
		}
	}
	return content, err
}

func totalLine(meminfo string) string {
	for line := range strings.SplitSeq(meminfo, "\n") {
		if strings.Contains(line, "MemTotal:") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// Record reads the machine below tree and returns the files that doing so took.
func Record(tree Tree) (Recording, error) {
	r := recorder{tree, Recording{}}
	_, err := Read(r)
	return r.files, err
}

// WriteTo writes one line a file, in order of path: path, a blank, the content as a quoted string where it is
// not plain.
func (r Recording) WriteTo(w io.Writer) (int64, error) {
	var total int64
	for _, path := range sortedKeys(r) {
		content := r[path]
		if strings.ContainsAny(content, "\n\"\\") {
			content = strconv.Quote(content)
		}
		n, err := fmt.Fprintf(w, "%s %s\n", path, content)
		total += int64(n)
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// Limits of a recording that is read: a machine of 4,096 CPUs stays well below them.
const (
	maxRecording = 64 << 20
	maxLines     = 1 << 19
)

// ReadRecording reads what WriteTo wrote. Lines that begin with # are comments.
func ReadRecording(r io.Reader) (Recording, error) {
	files := Recording{}
	lines := bufio.NewScanner(io.LimitReader(r, maxRecording))
	lines.Buffer(nil, maxFile)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		path, content, ok := strings.Cut(line, " ")
		if !ok || n > maxLines {
			return nil, fmt.Errorf("line %d of the recording is not PATH CONTENT", n)
		}
		if strings.HasPrefix(content, `"`) {
			plain, err := strconv.Unquote(content)
			if err != nil {
				return nil, fmt.Errorf("line %d of the recording: bad quoting", n)
			}
			content = plain
		}
		files[path] = content
	}
	return files, lines.Err()
}

// Open returns the tree that a path names: a directory (the root of a machine), or a file with a recording,
// which may be gzipped.
func Open(path string) (Tree, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return Dir(path), nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var text io.Reader = file
	if strings.HasSuffix(path, ".gz") {
		if text, err = gzip.NewReader(file); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	recording, err := ReadRecording(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return recording, nil
}
