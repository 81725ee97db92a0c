// Package state keeps the policy's state in a file, so that a restart of the agent moves nobody.
package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"proxima.io/agent/internal/policy"
)

// version is raised when an older agent could misread the file.
const version = 1

type content struct {
	Version int          `json:"version"`
	State   policy.State `json:"state"`
}

// Save replaces the file in one step: a crash leaves the old state or the new one, never half of it.
func Save(path string, s policy.State) error {
	text, err := json.Marshal(content{version, s})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), ".state-*")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name()) // fails after the rename, which is fine
	_, err = temporary.Write(text)
	if err == nil {
		err = temporary.Sync()
	}
	if err = errors.Join(err, temporary.Close()); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), path)
}

// Load reads the file. None is an empty state. One that cannot be read is put aside (.bad) and is an empty state too, with
// the reason: what is running is then taken from the runtime alone.
func Load(path string) (policy.State, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return policy.State{}, nil
	}
	if err != nil {
		return policy.State{}, err
	}
	var c content
	if err = json.Unmarshal(text, &c); err == nil && c.Version != version {
		err = fmt.Errorf("version %d, this agent writes %d", c.Version, version)
	}
	if err != nil {
		return policy.State{}, errors.Join(fmt.Errorf("state file %s: %w; put aside as .bad", path, err), os.Rename(path, path+".bad"))
	}
	for id, placed := range c.State.Placed {
		if placed == nil || placed.ID != id {
			delete(c.State.Placed, id)
		}
	}
	return c.State, nil
}
