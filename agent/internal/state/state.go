// Package state keeps the policy's state in a file, so that a restart of the agent moves nobody.
package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"proxima.io/agent/internal/cpuset"
	"proxima.io/agent/internal/policy"
)

// version is raised when an older agent could misread the file.
const version = 1

// Saved is what an agent knows when it is started again.
type Saved struct {
	State policy.State `json:"state"`
	// Told is what the runtime was told, of the containers that the agent has pinned: these and no others are
	// its own. nil is a file of an agent that did not keep it.
	Told map[string]policy.Pin `json:"told"`
	// Available and Reserved are what the configuration's amounts were made of.
	Available cpuset.Set `json:"available,omitzero"`
	Reserved  cpuset.Set `json:"reserved,omitzero"`
}

type content struct {
	Version int `json:"version"`
	Saved
}

// Save replaces the file in one step: a crash leaves the old state or the new one, never half of it.
func Save(path string, s Saved) error {
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

// Load reads the file. None is an empty state. One that cannot be read is put aside (.bad) and is an empty
// state too, with the reason: what is running is then taken from the runtime alone.
func Load(path string) (Saved, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Saved{}, nil
	}
	if err != nil {
		return Saved{}, err
	}
	var c content
	if err = json.Unmarshal(text, &c); err == nil && c.Version != version {
		err = fmt.Errorf("version %d, this agent writes %d", c.Version, version)
	}
	if err != nil {
		return Saved{}, errors.Join(fmt.Errorf("state file %s: %w; put aside as .bad", path, err), os.Rename(path, path+".bad"))
	}
	for id, placed := range c.State.Placed {
		if placed == nil || placed.ID != id {
			delete(c.State.Placed, id)
		}
	}
	return c.Saved, nil
}
