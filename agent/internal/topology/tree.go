package topology

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Tree is where the files of sysfs come from. Paths have no leading slash and begin at the root of the
// machine: "sys/devices/system/cpu/online".
type Tree interface {
	ReadFile(path string) (string, error) // content without surrounding white space
	List(dir string) ([]string, error)    // names in ascending order
}

// maxFile bounds one file: sysfs values are short, and a recorded tree may come from anywhere.
const maxFile = 1 << 16

// Dir is the tree below a directory: "/" for this machine, "/host" in a container that mounts it there.
type Dir string

// ReadFile reads one file below the directory.
func (d Dir) ReadFile(path string) (string, error) {
	file, err := os.Open(filepath.Join(string(d), path))
	if err != nil {
		return "", err
	}
	defer file.Close()
	buf := make([]byte, maxFile)
	n, err := file.Read(buf)
	if err != nil && n == 0 {
		// An empty file reads as EOF at once; sysfs has many (isolated, offline).
		if info, statErr := file.Stat(); statErr == nil && info.Mode().IsRegular() {
			return "", nil
		}
		return "", err
	}
	return trim(string(buf[:n])), nil
}

// trim takes white space off both ends, and the NUL with which kernels before 4.6 end some values.
func trim(content string) string { return strings.Trim(content, " \t\r\n\x00") }

// List names what a directory holds.
func (d Dir) List(dir string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(string(d), dir))
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// Recording is a tree held in memory: path → content.
type Recording map[string]string

// ReadFile returns the recorded content.
func (r Recording) ReadFile(path string) (string, error) {
	content, ok := r[path]
	if !ok {
		return "", &fs.PathError{Op: "read", Path: path, Err: fs.ErrNotExist}
	}
	return trim(content), nil
}

// List names what was recorded below a directory.
func (r Recording) List(dir string) ([]string, error) {
	seen := map[string]bool{}
	for path := range r {
		if rest, ok := strings.CutPrefix(path, dir+"/"); ok {
			name, _, _ := strings.Cut(rest, "/")
			seen[name] = true
		}
	}
	if len(seen) == 0 {
		return nil, &fs.PathError{Op: "list", Path: dir, Err: fs.ErrNotExist}
	}
	return sortedKeys(seen), nil
}
