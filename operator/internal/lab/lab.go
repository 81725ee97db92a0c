// Package lab starts a real API server for tests.
package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Server is an API server with its store, which has the CRDs of this operator and those below `crds`.
type Server struct {
	Config *rest.Config
	// Env makes users of that server.
	Env *envtest.Environment
}

// program holds etcd and the API server; scripts/control-plane.sh builds it.
const program = ".cache/control-plane"

// Main runs a package's tests beside one server. Where the program is missing, `server` stays nil, and Need
// says so in each test.
func Main(m *testing.M, server **Server, crds ...string) {
	os.Exit(func() int {
		root := repository()
		if _, err := os.Stat(filepath.Join(root, program)); err != nil {
			return m.Run()
		}
		started, stop, err := start(root, crds)
		if err != nil {
			fmt.Fprintln(os.Stderr, "the API server does not start:", err)
			return 1
		}
		defer stop()
		*server = started
		return m.Run()
	}())
}

// Need skips a test without a server.
func Need(t *testing.T, server *Server) {
	t.Helper()
	if server == nil {
		t.Skipf("skipped: %s is missing, which scripts/control-plane.sh builds", program)
	}
}

func start(root string, crds []string) (*Server, func(), error) {
	log.SetLogger(logr.Discard())
	assets, err := os.MkdirTemp("", "proxima-operator-")
	if err != nil {
		return nil, nil, err
	}
	for _, name := range []string{"etcd", "kube-apiserver"} {
		script := fmt.Sprintf("#!/bin/sh\nexec %q %s \"$@\"\n", filepath.Join(root, program), name)
		if err := os.WriteFile(filepath.Join(assets, name), []byte(script), 0o755); err != nil {
			return nil, nil, err
		}
	}
	env := &envtest.Environment{
		BinaryAssetsDirectory: assets,
		CRDDirectoryPaths:     append([]string{filepath.Join(root, "operator/config/crd")}, crds...),
		ErrorIfCRDPathMissing: true,
	}
	config, err := env.Start()
	stop := func() {
		if err := env.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "the API server does not stop:", err)
		}
		os.RemoveAll(assets)
	}
	if err != nil {
		stop()
		return nil, nil, err
	}
	config.QPS = -1
	return &Server{Config: config, Env: env}, stop, nil
}

// repository is the folder of this file's repository.
func repository() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "../../..")
}
