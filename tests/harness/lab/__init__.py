"""A Kubernetes cluster on this machine: real servers, and nodes that are namespaces with a kubelet and a
container runtime each. It needs no network and no registry, and leaves nothing behind."""
