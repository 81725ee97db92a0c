//! latest: a failover over a few of the children, which are chosen and put in order once for each host. The
//! choice is made when the tree is made, and nothing of it is left in the tree.

use proxima_wire::hash::{Distribution, Node, murmur64a};

use crate::{
    config::routes,
    route::{
        compile::{Build, CompileError, Maker},
        tree::NodeId,
    },
};

/// The children of this host, in the order in which they are asked. Each of the `weights`, from 0 to 1, is
/// that of a child, and `seed` is a number that other hosts do not have.
fn chosen(mut weights: Vec<f64>, count: usize, seed: u64) -> Vec<usize> {
    let mut left: Vec<usize> = (0..weights.len()).collect();
    let mut chosen = Vec::new();
    let mut seed = seed;
    while chosen.len() < count && !left.is_empty() {
        let nodes: Vec<Node<'_>> = weights.iter().map(|&weight| Node { name: "", weight }).collect();
        seed = murmur64a(&seed.to_le_bytes(), chosen.len() as u64);
        // Without any weight the children that are left stay in their order.
        let next = match Distribution::weighted_ch3(&nodes) {
            Ok(distribution) => distribution.pick(&seed.to_le_bytes()),
            Err(_) => 0,
        };
        weights.remove(next);
        chosen.push(left.remove(next));
    }
    chosen
}

impl<'a> Build<'a, &'a routes::Children> for routes::Latest {
    fn build(
        &'a self,
        children: &'a routes::Children,
        maker: &mut Maker<'_, 'a>,
    ) -> Result<NodeId, CompileError> {
        let seed = maker.host_number(&self.salt) ^ maker.worker_number(self.per_worker);
        let nodes = maker.children(children)?;
        let mut weights = self.weights.clone().unwrap_or_default();
        weights.resize(nodes.len(), 1.0);
        let chosen = chosen(weights, self.count, seed);
        let chosen = chosen.into_iter().filter_map(|child| nodes.get(child).copied());
        let chosen = chosen.collect();
        maker.failover(chosen, &self.rules)
    }
}

#[cfg(test)]
mod tests {
    use super::chosen;

    #[test]
    fn hosts_choose_different_children_by_weight_and_each_child_once() {
        let mut first = [0; 4];
        for host in 0..1000 {
            let order = chosen(vec![1.0, 1.0, 0.5, 0.0], 4, host);
            assert_eq!(order, chosen(vec![1.0, 1.0, 0.5, 0.0], 4, host), "host {host}");
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3], "host {host}");
            first[order[0]] += 1;
        }
        assert!(first[0] > 300 && first[1] > 300, "{first:?}");
        assert!((100..300).contains(&first[2]) && first[3] == 0, "{first:?}");
        assert_eq!(chosen(vec![1.0; 8], 2, 7).len(), 2);
        assert_eq!(chosen(vec![1.0; 2], 5, 7).len(), 2);
        assert_eq!(chosen(vec![0.0; 2], 2, 7), [0, 1]);
    }
}
