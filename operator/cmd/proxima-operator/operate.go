package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"proxima.io/operator/api/v1alpha1"
	"proxima.io/operator/internal/controller"
	"proxima.io/operator/internal/proxies"
	"proxima.io/operator/internal/versions"
)

// A leader that ends gives its lease back. One that was killed is followed after leaseDuration.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// askLimit is how long the service of versions may take.
const askLimit = 10 * time.Second

// options are the command line's.
type options struct {
	namespaces []string
	lease      string
	tokenFile  string
	caFile     string
	metrics    string
	health     string
	elect      bool
}

func parse(arguments []string, out io.Writer) (*options, error) {
	o := &options{}
	namespaces := ""
	flags := flag.NewFlagSet("proxima-operator", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&namespaces, "namespace", "",
		"namespaces in which SmartUpdates are rolled, with commas between")
	flags.StringVar(&o.lease, "lease-namespace", "",
		"namespace of the leader's Lease; empty: the first one above")
	flags.StringVar(&o.tokenFile, "token-file", "",
		"file with the token of the proxies' admin ports; it is re-read")
	flags.StringVar(&o.caFile, "ca", "",
		"file with the authorities of the admin ports' certificates, which must name "+
			"SERVICE.NAMESPACE.svc; empty: plain HTTP")
	flags.StringVar(&o.metrics, "metrics", ":8080", "address of /metrics; 0: none")
	flags.StringVar(&o.health, "health", ":8081", "address of /healthz and /readyz")
	flags.BoolVar(&o.elect, "leader-elect", true,
		"act only as the leader, so that two replicas do not act at once")
	flags.Usage = func() {
		fmt.Fprint(out, "proxima-operator --namespace NAMESPACE [OPTION…]\n"+
			"proxima-operator versions --file FILE [--listen ADDRESS]\n\n"+
			"Rolls the StatefulSets that SmartUpdates name, together with the proxies before them.\n\n")
		flags.PrintDefaults()
	}
	if err := flags.Parse(arguments); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unknown argument %s; --help lists all", flags.Arg(0))
	}
	for name := range strings.SplitSeq(namespaces, ",") {
		if name = strings.TrimSpace(name); name != "" {
			o.namespaces = append(o.namespaces, name)
		}
	}
	if len(o.namespaces) == 0 {
		return nil, errors.New("--namespace is missing: the namespaces in which SmartUpdates are rolled")
	}
	if o.lease == "" {
		o.lease = o.namespaces[0]
	}
	return o, nil
}

// operate takes turns until the context ends.
func operate(ctx context.Context, arguments []string, out io.Writer) error {
	options, err := parse(arguments, out)
	if err != nil {
		return err
	}
	logger := logr.FromSlogHandler(slog.NewTextHandler(out, nil))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	manager, err := manage(config, options)
	if err != nil {
		return err
	}
	return manager.Start(ctx)
}

// manage makes the manager with its cache, ports and lease.
func manage(config *rest.Config, options *options) (ctrl.Manager, error) {
	config.UserAgent = "proxima-operator"
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	watched := map[string]cache.Config{}
	for _, namespace := range options.namespaces {
		watched[namespace] = cache.Config{}
	}
	lease, renew, retry := leaseDuration, renewDeadline, retryPeriod
	strip := cache.TransformStripManagedFields()
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                        scheme,
		Cache:                         cache.Options{DefaultNamespaces: watched, DefaultTransform: strip},
		Client:                        client.Options{Cache: &client.CacheOptions{Unstructured: false}},
		Metrics:                       metricsserver.Options{BindAddress: options.metrics},
		HealthProbeBindAddress:        options.health,
		LeaderElection:                options.elect,
		LeaderElectionID:              "proxima-operator",
		LeaderElectionNamespace:       options.lease,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &lease,
		RenewDeadline:                 &renew,
		RetryPeriod:                   &retry,
	})
	if err != nil {
		return nil, err
	}
	for _, add := range []func(string, healthz.Checker) error{manager.AddHealthzCheck, manager.AddReadyzCheck} {
		if err := add("ping", healthz.Ping); err != nil {
			return nil, err
		}
	}
	reconciler := controller.New(
		manager.GetClient(), manager.GetAPIReader(), proxies.NewClient(options.tokenFile, options.caFile),
		versions.NewClient(askLimit), manager.GetEventRecorder("proxima-operator"),
	)
	return manager, reconciler.Setup(manager)
}
