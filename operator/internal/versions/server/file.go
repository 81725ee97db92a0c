package server

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"proxima.io/operator/internal/versions"
)

// File is a file of versions that may change while it is served.
type File struct {
	path   string
	offers atomic.Pointer[[]versions.Offer]
	// looked is the text that was read last, good or bad.
	looked string
}

// Open reads the file for the first time, when it has to be good.
func Open(path string) (*File, error) {
	f := &File{path: path}
	text, err := f.text()
	if err != nil {
		return nil, err
	}
	return f, f.take(text)
}

// Follow looks for another text until the context ends. It reads the whole file each time, as a ConfigMap's
// volume exchanges a link, an editor a file, and a mount neither.
func (f *File) Follow(ctx context.Context, every time.Duration, log *slog.Logger) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	failed := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		text, err := f.text()
		if err == nil && text == f.looked {
			failed = ""
			continue
		}
		if err == nil {
			err = f.take(text)
		}
		switch {
		case err == nil:
			log.Info("other versions are served", "file", f.path)
			failed = ""
		case err.Error() != failed:
			log.Error("refused; what was read before goes on being served", "error", err)
			failed = err.Error()
		}
	}
}

func (f *File) text() (string, error) {
	file, err := os.Open(f.path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, versions.MaxBytes+1))
	return string(data), err
}

// take serves another text from now on, unless it is bad.
func (f *File) take(text string) error {
	f.looked = text
	offers, err := versions.ReadFile([]byte(text))
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	if len(offers) == 0 {
		return fmt.Errorf("%s: there is no product in it: write one below `versions:`", f.path)
	}
	for _, offer := range offers {
		if component := database(offer.Product); len(offer.Matrix[component]) == 0 {
			return fmt.Errorf("%s: %s %s has no versions of %s, which its name says: write them, or another "+
				"`product`", f.path, offer.Product, offer.Operator, component)
		}
	}
	f.offers.Store(&offers)
	return nil
}
