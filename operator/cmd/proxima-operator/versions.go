package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"proxima.io/operator/internal/versions/server"
)

// looks is how often the file of versions is read again.
const looks = 2 * time.Second

// serveVersions answers the API of Percona's version service from a file, until the context ends.
func serveVersions(ctx context.Context, arguments []string, out io.Writer) error {
	flags := flag.NewFlagSet("versions", flag.ContinueOnError)
	flags.SetOutput(out)
	path := flags.String("file", "", "versions of products, in YAML or in Percona's JSON; it is followed")
	address := flags.String("listen", ":11000", "address of the API")
	flags.Usage = func() {
		fmt.Fprint(out, "proxima-operator versions --file FILE [--listen ADDRESS]\n\n"+
			"Answers the API of Percona's version service from a file.\n\n")
		flags.PrintDefaults()
	}
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if *path == "" || flags.NArg() > 0 {
		return errors.New("versions: name the file: proxima-operator versions --file versions.yaml")
	}
	file, err := server.Open(*path)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(out, nil))
	log.Info("versions are served", "file", *path, "address", listener.Addr().String())
	go file.Follow(ctx, looks, log)
	service := &http.Server{
		Handler:        file.Handler(),
		ReadTimeout:    10 * time.Second,
		WriteTimeout:   10 * time.Second,
		IdleTimeout:    time.Minute,
		MaxHeaderBytes: 16 << 10,
	}
	ended := make(chan error, 1)
	go func() { ended <- service.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	closing, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return service.Shutdown(closing)
}
