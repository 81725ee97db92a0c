package topology

// deviceClasses are the directories of sysfs whose devices have a place worth knowing.
var deviceClasses = []struct{ name, dir string }{
	{"net", "sys/class/net"},
	{"block", "sys/class/block"},
	{"infiniband", "sys/class/infiniband"},
	{"drm", "sys/class/drm"},
}

// devices lists what sits near one node. On a machine with one node nothing is near or far, so nothing is
// read.
func (r *reader) devices(nodes []Node) []Device {
	if len(nodes) < 2 {
		return nil
	}
	known := map[int]bool{}
	for _, n := range nodes {
		known[n.ID] = true
	}
	var devices []Device
	for _, class := range deviceClasses {
		names, err := r.tree.List(class.dir)
		if err != nil {
			continue
		}
		for _, name := range names {
			dir := class.dir + "/" + name
			node := r.deviceNode(dir)
			if !known[node] {
				continue
			}
			number, err := r.tree.ReadFile(dir + "/dev")
			if err != nil {
				number = "" // network cards have no device file
			}
			devices = append(devices, Device{Name: name, Class: class.name, Node: node, Number: number})
		}
	}
	return devices
}

// deviceNode asks the device's own hardware and then one further up: a namespace of an NVMe drive sits below
// its controller, which sits below the PCI device that knows the node.
func (r *reader) deviceNode(dir string) int {
	for _, up := range []string{"/device/numa_node", "/device/device/numa_node"} {
		if node := r.number(dir+up, -1); node >= 0 {
			return node
		}
	}
	return -1
}
