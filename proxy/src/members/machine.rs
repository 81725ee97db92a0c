//! This machine as the node agent describes it, to be looked at: its CPUs by NUMA node, cache and core, and the
//! containers on them. Nothing is decided by it.

use serde::{Deserialize, Serialize};

use super::BadSnapshot;

/// Bytes of JSON that nodes and containers may each have. A machine of 512 CPUs with 500 containers has a third
/// of it.
const ROOM: usize = 256 << 10;
/// Containers that are kept.
const CONTAINERS: usize = 1000;
/// Linux numbers no more CPUs.
const CPUS: u16 = 8192;
/// The longest name of a pod.
const NAME: usize = 253;

/// The machine and the containers on it.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Machine {
    nodes: Vec<Node>,
    containers: Vec<Container>,
    /// Containers for which there was no room.
    left_out: usize,
}

/// A NUMA node.
#[derive(Debug, PartialEq, Eq, Deserialize, Serialize)]
struct Node {
    id: u16,
    #[serde(default)]
    sockets: Vec<u32>,
    #[serde(default)]
    cpus: CpuList,
    /// Those of its CPUs that are behind one cache, for each cache that is known.
    #[serde(default)]
    caches: Vec<CpuList>,
    /// Those of its CPUs that are threads of one core, for each core of several threads.
    #[serde(default)]
    cores: Vec<CpuList>,
}

/// A container.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Container {
    namespace: String,
    pod: String,
    name: String,
    /// The NUMA nodes of the CPUs that it may use.
    nodes: Vec<u16>,
    /// The CPUs that it may use. `None`: the agent does not tell them.
    cpus: Option<CpuList>,
    /// Those of them that it was given to itself. `None`: there are none.
    own: Option<CpuList>,
}

/// CPUs as the kernel lists them, as in `0-3,8`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
struct CpuList {
    text: String,
    count: usize,
}

#[derive(Deserialize)]
struct Snapshot {
    nodes: Vec<Node>,
    #[serde(default)]
    pods: Vec<SnapshotPod>,
}

#[derive(Deserialize)]
struct SnapshotPod {
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    containers: Vec<SnapshotContainer>,
}

#[derive(Deserialize)]
struct SnapshotContainer {
    #[serde(default)]
    name: String,
    #[serde(default)]
    nodes: Vec<u16>,
    cpus: Option<CpuList>,
    own: Option<CpuList>,
}

impl Machine {
    /// Reads a snapshot of the agent.
    ///
    /// # Errors
    /// Why it cannot be shown. Its localities may be of use nevertheless.
    pub fn read(text: &[u8]) -> Result<Self, BadSnapshot> {
        let Snapshot { nodes, pods } = serde_json::from_slice(text)?;
        if let Some(node) = nodes.iter().find(|node| !node.is_whole()) {
            return Err(BadSnapshot::Parts(node.id));
        }
        let cpus: usize = nodes.iter().map(|node| node.cpus.count).sum();
        if cpus > usize::from(CPUS) || json_bytes(&nodes) > ROOM {
            return Err(BadSnapshot::Cpus(cpus));
        }
        let (mut containers, mut left_out, mut room) = (Vec::new(), 0, ROOM);
        for pod in &pods {
            for container in &pod.containers {
                let container = Container::of(pod, container);
                let bytes = json_bytes(&container);
                if containers.len() == CONTAINERS || bytes > room {
                    left_out += 1;
                    continue;
                }
                room -= bytes;
                containers.push(container);
            }
        }
        Ok(Self {
            nodes,
            containers,
            left_out,
        })
    }
}

impl Node {
    /// Caches and cores are parts of its CPUs.
    fn is_whole(&self) -> bool {
        let sum = |parts: &[CpuList]| -> usize { parts.iter().map(|part| part.count).sum() };
        sum(&self.caches).max(sum(&self.cores)) <= self.cpus.count
    }
}

impl Container {
    fn of(pod: &SnapshotPod, container: &SnapshotContainer) -> Self {
        let name = |text: &str| text.chars().take(NAME).collect();
        Self {
            namespace: name(&pod.namespace),
            pod: name(&pod.name),
            name: name(&container.name),
            nodes: container.nodes.clone(),
            cpus: container.cpus.clone(),
            own: container.own.clone(),
        }
    }
}

impl TryFrom<String> for CpuList {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        const BAD: &str = "a list of CPUs is ascending, as in 0-3,8";
        // The least number that may follow.
        let (mut next, mut count) = (0, 0);
        for part in text.split(',').filter(|_| !text.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last): (u16, u16) = (first.parse().map_err(|_| BAD)?, last.parse().map_err(|_| BAD)?);
            if first < next || last < first || last >= CPUS {
                return Err(BAD);
            }
            count += usize::from(last - first) + 1;
            next = last + 1;
        }
        Ok(Self { text, count })
    }
}

impl From<CpuList> for String {
    fn from(list: CpuList) -> Self {
        list.text
    }
}

fn json_bytes(value: &impl Serialize) -> usize {
    serde_json::to_string(value).map_or(usize::MAX, |text| text.len())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(snapshot: &Value) -> Result<Value, String> {
        let machine = Machine::read(snapshot.to_string().as_bytes()).map_err(|error| error.to_string())?;
        Ok(json!(machine))
    }

    fn with_containers(containers: &[Value]) -> Value {
        json!({"version": 1, "nodes": [{"id": 0, "cpus": "0-7"}], "pods": [
            {"uid": "u", "namespace": "shop", "name": "redis-0", "ips": [], "containers": containers},
        ]})
    }

    #[test]
    fn what_the_agent_tells_of_cpus_is_what_is_shown() {
        let shown = read(&json!({
            "version": 1, "host": "worker-7", "later": {},
            "nodes": [{"id": 1, "sockets": [0], "cpus": "0-3,8", "caches": ["0-1", "2-3,8"], "cores": ["0,8"],
                       "distances": {"1": 10}}],
            "pods": [{"uid": "u", "namespace": "shop", "name": "redis-0", "ips": ["10.0.0.1"], "containers": [
                {"id": "c", "name": "redis", "nodes": [1], "cpus": "0-1", "own": "0-1"}]}],
        }));
        let wanted = json!({
            "nodes": [{"id": 1, "sockets": [0], "cpus": "0-3,8", "caches": ["0-1", "2-3,8"], "cores": ["0,8"]}],
            "containers": [{"namespace": "shop", "pod": "redis-0", "name": "redis", "nodes": [1],
                            "cpus": "0-1", "own": "0-1"}],
            "left_out": 0,
        });
        assert_eq!(shown, Ok(wanted));
    }

    #[test]
    fn an_older_agent_tells_no_cpus_of_containers() {
        let container = json!({"id": "c", "name": "redis", "nodes": [0]});
        let shown = read(&with_containers(&[container])).unwrap();
        assert_eq!(shown["containers"][0]["cpus"], Value::Null);
        assert_eq!(shown["nodes"][0]["caches"], json!([]));
    }

    #[test]
    fn lists_that_are_none_and_parts_that_are_too_many_are_refused() {
        let all = [
            ("3-1", "", "", "ascending"),
            ("0-3,3", "", "", "ascending"),
            ("0-8192", "", "", "ascending"),
            ("0-", "", "", "ascending"),
            ("0,,1", "", "", "ascending"),
            ("0-1", "0-2", "", "NUMA node 5"),
            ("0-1", "", "0-8191", "NUMA node 5"),
        ];
        let mut failed = Vec::new();
        for (cpus, cache, core, word) in all {
            let node = json!({"id": 5, "cpus": cpus, "caches": [cache], "cores": [core]});
            let shown = read(&json!({"nodes": [node], "pods": []}));
            if !shown.as_ref().is_err_and(|why| why.contains(word)) {
                failed.push(format!("{node}: {shown:?}"));
            }
        }
        let everything = json!({"id": 0, "cpus": "0-8191"});
        if read(&json!({"nodes": [everything, everything]})).is_ok() {
            failed.push("more CPUs than Linux has".into());
        }
        assert!(failed.is_empty(), "{failed:#?}");
    }

    #[test]
    fn whatever_the_agent_sends_the_rest_is_counted() {
        let long = "\u{1}".repeat(1000);
        let container = json!({"name": long, "nodes": [0], "cpus": "0-7"});
        let shown = read(&with_containers(&vec![container; 500])).unwrap();
        let kept = shown["containers"].as_array().unwrap().len();
        assert!((10..=CONTAINERS).contains(&kept), "{kept}");
        let bytes = shown.to_string().len();
        assert!(bytes <= ROOM + 1024, "{bytes}");
        assert_eq!(shown["left_out"], 500 - kept);
        let small = read(&with_containers(&vec![json!({"nodes": [0]}); 1500])).unwrap();
        let kept = small["containers"].as_array().unwrap().len();
        assert_eq!((kept, &small["left_out"]), (CONTAINERS, &json!(500)));
    }
}
