// Package e2e runs the operator's program beside a real API server. Pods are written as a kubelet and the
// controller of StatefulSets would, and proxies are HTTP servers that speak the contract of orders.
package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	events "k8s.io/api/events/v1"
	rbac "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"proxima.io/operator/api/v1alpha1"
	"proxima.io/operator/internal/lab"
)

var (
	server  *lab.Server
	program string
)

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "proxima-operator-e2e-")
	if err != nil {
		panic(err)
	}
	program = filepath.Join(folder, "proxima-operator")
	arguments := []string{"build", "-trimpath", "-ldflags=-s", "-o", program}
	if os.Getenv("PROXIMA_RACE") != "" {
		arguments = append(arguments, "-race")
	}
	build := exec.Command("go", append(arguments, "../../cmd/proxima-operator")...)
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "the operator cannot be built: %v\n%s", err, out)
		os.Exit(1)
	}
	lab.Main(m, &server, "testdata/crds.yaml")
}

// cluster is a namespace with a set of three pods, three proxies and the operator with its own rights.
type cluster struct {
	client.Client
	t         *testing.T
	namespace string
	fleet     *fleet
	set       *apps.StatefulSet
	object    *v1alpha1.SmartUpdate
	operator  *exec.Cmd
	log       *output
	kube      string
	// metrics is the address of the operator that was started last.
	metrics string
	folder  string

	lock sync.Mutex
	// evicted are the pods that went, in their order.
	evicted []string
	// failing is a revision whose pods cannot get their image.
	failing string
	// frozen lets no pod come or go.
	frozen bool
	// seenFirst lets no new pod be ready before the status says that it is not online, so that no pod is
	// replaced between two looks of the operator: it would go on without a step that it has not seen.
	seenFirst bool
}

func begin(t *testing.T) *cluster {
	t.Helper()
	lab.Need(t, server)
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	connected, err := client.New(server.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{
		Client: connected, t: t, fleet: &fleet{pods: map[string]string{}}, folder: t.TempDir(), log: &output{},
	}
	namespace := &core.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}}
	c.make(namespace)
	c.namespace = namespace.Name
	c.makeRights("role.yaml")
	c.makeSet(3)
	for number := range 3 {
		c.addProxy(number)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			c.goOn(ctx)
			time.Sleep(20 * time.Millisecond)
		}
	}()
	c.until("all pods are ready", func() bool { return c.readyPods() == 3 })
	t.Cleanup(func() {
		c.stop()
		cancel()
		<-done
		for _, p := range c.fleet.proxies {
			p.server.Close()
		}
		if t.Failed() {
			t.Logf("the operator's log:\n%s", c.log)
		}
	})
	return c
}

// output is a log that a test may read while it is written.
type output struct {
	lock sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(line []byte) (int, error) {
	o.lock.Lock()
	defer o.lock.Unlock()
	return o.text.Write(line)
}

func (o *output) String() string {
	o.lock.Lock()
	defer o.lock.Unlock()
	return o.text.String()
}

func (c *cluster) make(object client.Object) {
	c.t.Helper()
	if err := c.Create(c.t.Context(), object); err != nil {
		c.t.Fatal(err)
	}
}

// makeRights makes a user of the API server whose rights are those of the files in config/rbac.
func (c *cluster) makeRights(files ...string) {
	c.t.Helper()
	name := "operator-of-" + c.namespace
	user, err := server.Env.AddUser(envtest.User{Name: name}, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	config, err := user.KubeConfig()
	if err != nil {
		c.t.Fatal(err)
	}
	c.kube = filepath.Join(c.folder, "kubeconfig")
	if err := os.WriteFile(c.kube, config, 0o600); err != nil {
		c.t.Fatal(err)
	}
	c.makeRoles(name, files...)
}

// makeRoles gives a user the rights in these files.
func (c *cluster) makeRoles(user string, files ...string) {
	c.t.Helper()
	for _, role := range roles(c.t, files...) {
		role.Namespace = c.namespace
		c.make(role)
		c.make(&rbac.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: role.Name},
			RoleRef:    rbac.RoleRef{APIGroup: rbac.GroupName, Kind: "Role", Name: role.Name},
			Subjects:   []rbac.Subject{{APIGroup: rbac.GroupName, Kind: rbac.UserKind, Name: user}},
		})
	}
}

func roles(t *testing.T, files ...string) []*rbac.Role {
	t.Helper()
	var found []*rbac.Role
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join("../../config/rbac", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range strings.Split(string(text), "\n---\n") {
			role := &rbac.Role{}
			if err := yaml.Unmarshal([]byte(document), role); err != nil {
				t.Fatal(err)
			}
			if role.Kind == "Role" {
				found = append(found, role)
			}
		}
	}
	return found
}

func (c *cluster) makeSet(replicas int32) {
	labels := map[string]string{"app": "db"}
	c.set = &apps.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "db"},
		Spec: apps.StatefulSetSpec{
			Replicas: &replicas, ServiceName: "db", Selector: &metav1.LabelSelector{MatchLabels: labels},
			UpdateStrategy: apps.StatefulSetUpdateStrategy{Type: apps.OnDeleteStatefulSetStrategyType},
			Template: core.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       core.PodSpec{Containers: []core.Container{{Name: "server", Image: "mariadb:11.8.2"}}},
			},
		},
	}
	c.make(c.set)
}

// address is one of this machine that is no loopback address, which an EndpointSlice refuses.
func address(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range addresses {
		ip, ok := one.(*net.IPNet)
		if ok && ip.IP.To4() != nil && !ip.IP.IsLoopback() && !ip.IP.IsLinkLocalUnicast() {
			return ip.IP.String()
		}
	}
	t.Skip("skipped: this machine has no address but loopback's, which no endpoint may have")
	return ""
}

// addProxy starts a proxy, with a slice of its own, as its port is its own.
func (c *cluster) addProxy(number int) *proxy {
	c.t.Helper()
	name := fmt.Sprintf("proxima-%d", number)
	p, err := c.fleet.start(name, address(c.t))
	if err != nil {
		c.t.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(p.address)
	value, _ := strconv.Atoi(port)
	admin, tcp, listens, ready := "admin", core.ProtocolTCP, int32(value), true
	c.make(&discovery.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: c.namespace, Name: name, Labels: map[string]string{discovery.LabelServiceName: "proxima"},
		},
		AddressType: discovery.AddressTypeIPv4,
		Ports:       []discovery.EndpointPort{{Name: &admin, Port: &listens, Protocol: &tcp}},
		Endpoints: []discovery.Endpoint{{
			Addresses: []string{host}, Conditions: discovery.EndpointConditions{Ready: &ready},
			TargetRef: &core.ObjectReference{Kind: "Pod", Namespace: c.namespace, Name: name},
		}},
	})
	return p
}

// goOn does what the controller of StatefulSets, the kubelets and the proxies' endpoints do.
func (c *cluster) goOn(ctx context.Context) {
	set := &apps.StatefulSet{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: "db"}, set); err != nil {
		return
	}
	revision := fmt.Sprintf("revision-%d", set.Generation)
	if set.Status.UpdateRevision != revision {
		set.Status.ObservedGeneration, set.Status.UpdateRevision, set.Status.Replicas = set.Generation, revision, 3
		_ = c.Status().Update(ctx, set)
	}
	c.lock.Lock()
	frozen, failing, seenFirst := c.frozen, c.failing, c.seenFirst
	c.lock.Unlock()
	if frozen {
		return
	}
	ready := map[string]string{}
	for ordinal := range int(*set.Spec.Replicas) {
		pod := &core.Pod{}
		name := fmt.Sprintf("db-%d", ordinal)
		err := c.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: name}, pod)
		switch {
		case errors.IsNotFound(err):
			c.createPod(ctx, set, name, revision)
		case err != nil:
		case pod.DeletionTimestamp != nil:
			c.lock.Lock()
			c.evicted = append(c.evicted, name)
			c.lock.Unlock()
			_ = c.Delete(ctx, pod, client.GracePeriodSeconds(0))
		case pod.Labels[apps.ControllerRevisionHashLabelKey] == failing:
			c.setStatus(ctx, pod, false)
		case seenFirst && len(pod.Status.Conditions) == 0 && !c.isAwaited(ctx, name):
		default:
			c.setStatus(ctx, pod, true)
			ready[name] = string(pod.UID)
		}
	}
	c.fleet.lock.Lock()
	c.fleet.pods = ready
	c.fleet.lock.Unlock()
}

// isAwaited: the operator has told that this pod is new and not online.
func (c *cluster) isAwaited(ctx context.Context, name string) bool {
	object := &v1alpha1.SmartUpdate{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(c.object), object); err != nil {
		return false
	}
	ready := meta.FindStatusCondition(object.Status.Conditions, v1alpha1.Ready)
	step := object.Status.Step
	return ready != nil && ready.Reason == "PodNotOnline" && step != nil && step.Pod == name
}

func (c *cluster) createPod(ctx context.Context, set *apps.StatefulSet, name, revision string) {
	pod := &core.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: c.namespace, Name: name,
			Labels:          map[string]string{"app": "db", apps.ControllerRevisionHashLabelKey: revision},
			OwnerReferences: owned(set),
		},
		Spec: *set.Spec.Template.Spec.DeepCopy(),
	}
	pod.Spec.NodeName = "n1"
	_ = c.Create(ctx, pod)
}

func owned(set *apps.StatefulSet) []metav1.OwnerReference {
	kind := apps.SchemeGroupVersion.WithKind("StatefulSet")
	return []metav1.OwnerReference{*metav1.NewControllerRef(set, kind)}
}

func (c *cluster) setStatus(ctx context.Context, pod *core.Pod, ready bool) {
	want := core.ConditionFalse
	if ready {
		want = core.ConditionTrue
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == core.PodReady && condition.Status == want {
			return
		}
	}
	pod.Status.Conditions = []core.PodCondition{{Type: core.PodReady, Status: want}}
	pod.Status.ContainerStatuses = nil
	if pod.Status.Phase = core.PodRunning; !ready {
		pod.Status.Phase = core.PodPending
		waiting := &core.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}
		pod.Status.ContainerStatuses = []core.ContainerStatus{
			{Name: "server", Image: "x", ImageID: "", State: core.ContainerState{Waiting: waiting}},
		}
	}
	_ = c.Status().Update(ctx, pod)
}

func (c *cluster) readyPods() int {
	c.fleet.lock.Lock()
	defer c.fleet.lock.Unlock()
	return len(c.fleet.pods)
}

func (c *cluster) gone() []string {
	c.lock.Lock()
	defer c.lock.Unlock()
	return append([]string{}, c.evicted...)
}

// start starts the operator, which ends with the test.
func (c *cluster) start() {
	c.t.Helper()
	c.operator = c.another()
}

// another starts one more operator.
func (c *cluster) another() *exec.Cmd {
	c.t.Helper()
	file := filepath.Join(c.folder, "token")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		c.t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		c.t.Fatal(err)
	}
	c.metrics = free.Addr().String()
	free.Close()
	operator := exec.Command(program, "--namespace", c.namespace, "--token-file", file, "--metrics", c.metrics,
		"--health", "0", "--leader-elect=false")
	operator.Env = append(os.Environ(), "KUBECONFIG="+c.kube)
	operator.Stdout, operator.Stderr = c.log, c.log
	if err := operator.Start(); err != nil {
		c.t.Fatal(err)
	}
	return operator
}

func (c *cluster) stop() {
	if c.operator != nil {
		_ = c.operator.Process.Kill()
		_ = c.operator.Wait()
		c.operator = nil
	}
}

// smartUpdate makes the object, and waits until the operator is at rest with it.
func (c *cluster) smartUpdate(change func(*v1alpha1.SmartUpdateSpec)) {
	c.t.Helper()
	c.object = &v1alpha1.SmartUpdate{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "db"},
		Spec: v1alpha1.SmartUpdateSpec{
			StatefulSet: "db", Proxies: v1alpha1.Proxies{Service: "proxima", Pool: "db"},
		},
	}
	change(&c.object.Spec)
	c.make(c.object)
}

func (c *cluster) seen() *v1alpha1.SmartUpdate {
	object := &v1alpha1.SmartUpdate{}
	if err := c.Get(c.t.Context(), client.ObjectKeyFromObject(c.object), object); err != nil {
		c.t.Fatal(err)
	}
	return object
}

// reason is that of the condition Ready.
func (c *cluster) reason() string {
	for _, condition := range c.seen().Status.Conditions {
		if condition.Type == v1alpha1.Ready {
			return condition.Reason
		}
	}
	return ""
}

// message is that of the step.
func (c *cluster) message() string {
	if step := c.seen().Status.Step; step != nil {
		return step.Message
	}
	return ""
}

func (c *cluster) untilReason(want string) {
	c.t.Helper()
	c.until("Ready has the reason "+want, func() bool { return c.reason() == want })
}

// image changes the set's template.
func (c *cluster) image(image string) string {
	c.t.Helper()
	set := &apps.StatefulSet{}
	if err := c.Get(c.t.Context(), client.ObjectKeyFromObject(c.set), set); err != nil {
		c.t.Fatal(err)
	}
	patch := fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"server","image":%q}]}}}}`, image)
	changes := client.RawPatch(types.StrategicMergePatchType, []byte(patch))
	if err := c.Patch(c.t.Context(), set, changes); err != nil {
		c.t.Fatal(err)
	}
	return fmt.Sprintf("revision-%d", set.Generation)
}

// rolled: all pods have the set's image, and nothing of the roll is left.
func (c *cluster) rolled(image string) bool {
	status := c.seen().Status
	if status.Roll != nil || status.LastRoll == nil || c.reason() != "UpToDate" {
		return false
	}
	pods := &core.PodList{}
	if err := c.List(c.t.Context(), pods, client.InNamespace(c.namespace)); err != nil {
		c.t.Fatal(err)
	}
	for _, pod := range pods.Items {
		if pod.Spec.Containers[0].Image != image {
			return false
		}
	}
	c.fleet.lock.Lock()
	defer c.fleet.lock.Unlock()
	for _, p := range c.fleet.proxies {
		if p.order != nil || p.writer != "db-0" {
			return false
		}
	}
	return len(pods.Items) == 3
}

func (c *cluster) reasonsOfEvents() []string {
	list := &events.EventList{}
	if err := c.List(c.t.Context(), list, client.InNamespace(c.namespace)); err != nil {
		c.t.Fatal(err)
	}
	var reasons []string
	for _, event := range list.Items {
		reasons = append(reasons, event.Reason)
	}
	return reasons
}

func (c *cluster) until(what string, holds func() bool) {
	c.t.Helper()
	deadline := time.Now().Add(90 * time.Second)
	for !holds() {
		if time.Now().After(deadline) {
			status := "no object"
			if c.object != nil {
				text, _ := yaml.Marshal(c.seen().Status)
				status = string(text)
			}
			c.t.Fatalf("not within 90 s: %s\n%s", what, status)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
