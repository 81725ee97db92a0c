//! Ketama's circle of points.

use md5::{Digest, Md5};

use super::Node;

/// Points of a server of average weight.
const POINTS_PER_SERVER: f32 = 160.0;
/// Numbers of 32 bits in one MD5 digest.
const POINTS_PER_DIGEST: f32 = 4.0;

/// The points of all servers on the circle of 32-bit numbers. A number belongs to the first point at or after
/// it.
///
/// libmemcached (`MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED`) and twemproxy place the same points.
#[derive(Debug)]
pub(super) struct Continuum {
    /// `value << 32 | owner`, ascending, so that of equal values the server named first wins. The last one
    /// stands for the top of the circle and belongs to the first point's owner: every number has a point at
    /// or after it.
    points: Vec<u64>,
    /// For the top bits of a value: the index of the first point with these top bits or greater ones. There
    /// are as many entries as points, so a search looks at one or two points, whatever their number.
    starts: Vec<u32>,
    /// The shift that leaves the top bits of a value.
    shift: u32,
}

impl Continuum {
    /// Places the points. The weights must add up to a normal `f32` above 0: then the heaviest server has
    /// points.
    pub(super) fn new(nodes: &[Node<'_>]) -> Self {
        let total: f64 = nodes.iter().map(|node| node.weight).sum();
        let mut points = Vec::with_capacity(nodes.len() * POINTS_PER_SERVER as usize + 1);
        for (owner, node) in nodes.iter().enumerate() {
            let share = node.weight as f32 / total as f32;
            for digest in 0..digests(share, nodes.len()) {
                let digest: [u8; 16] = Md5::digest(format!("{}-{digest}", node.name)).into();
                points.extend(
                    digest
                        .as_chunks::<4>()
                        .0
                        .iter()
                        .map(|v| point(u32::from_le_bytes(*v), owner)),
                );
            }
        }
        points.sort_unstable();

        let top_bits = points.len().max(2).next_power_of_two().trailing_zeros();
        let shift = u32::BITS - top_bits;
        let mut next = 0;
        let starts = (0..1u64 << top_bits)
            .map(|top| {
                while points.get(next).is_some_and(|point| point >> 32 >> shift < top) {
                    next += 1;
                }
                next as u32
            })
            .collect();
        points.push(point(u32::MAX, points.first().map_or(0, |first| owner(*first))));
        Self {
            points,
            starts,
            shift,
        }
    }

    /// The server that owns `hash`.
    #[inline]
    pub(super) fn owner_of(&self, hash: u32) -> usize {
        owner(self.points[self.first_from(hash)])
    }

    /// The owners of all points, from that of `hash` once around the circle.
    pub(super) fn owners_from(&self, hash: u32) -> impl Iterator<Item = usize> {
        let (before, from) = self.points.split_at(self.first_from(hash));
        from.iter().chain(before).map(|point| owner(*point))
    }

    /// Two steps without a branch and then, seldom, more. A branch here depends on the key's hash, which is
    /// known late, and a wrong guess discards the work that the processor does meanwhile.
    #[inline]
    fn first_from(&self, hash: u32) -> usize {
        let hashed = point(hash, 0);
        let mut index = self.starts[(hash >> self.shift) as usize] as usize;
        index += usize::from(self.points[index] < hashed);
        index += usize::from(self.points[index] < hashed);
        while self.points[index] < hashed {
            index += 1;
        }
        index
    }
}

/// The number of digests whose points a server with this share of the total weight has. It is computed in
/// single precision, as libmemcached and twemproxy do: another rounding would move keys.
fn digests(share: f32, servers: usize) -> u32 {
    let exact = share * POINTS_PER_SERVER / POINTS_PER_DIGEST * servers as f32;
    (f64::from(exact) + 1e-10) as f32 as u32
}

fn point(value: u32, owner: usize) -> u64 {
    u64::from(value) << 32 | owner as u64
}

fn owner(point: u64) -> usize {
    point as u32 as usize
}

#[cfg(test)]
mod tests {
    use super::{Continuum, owner};
    use crate::hash::Node;

    fn continuum(nodes: &[(&str, f64)]) -> Continuum {
        Continuum::new(
            &nodes
                .iter()
                .map(|&(name, weight)| Node { name, weight })
                .collect::<Vec<_>>(),
        )
    }

    type Points = &'static [(u32, usize)];

    #[test]
    fn known_points() {
        type Row = (
            &'static [(&'static str, f64)],
            &'static [usize],
            Points,
            (u32, usize),
        );
        let table: [Row; 3] = [
            (
                &[("127.0.0.1:22121", 1.0), ("127.0.0.1:22122", 1.0)],
                &[160, 160],
                &[(2282485, 0), (39573865, 0), (43684178, 1), (64045373, 1)],
                (4280624876, 0),
            ),
            (
                &[("s1", 1.0), ("s2", 2.0), ("s3", 3.0)],
                &[80, 160, 240],
                &[(14733755, 2), (17992034, 2), (25053147, 0), (28026067, 1)],
                (4270593805, 2),
            ),
            (
                &[("server1", 1.0), ("server2", 1.0), ("server3", 1.0)],
                &[160, 160, 160],
                &[(9796559, 2), (10686546, 1), (26495822, 0), (43122646, 1)],
                (4290552061, 1),
            ),
        ];
        for (nodes, counts, first, last) in table {
            let circle = continuum(nodes);
            let (top, points) = circle.points.split_last().unwrap();
            let as_pair = |point: &u64| ((point >> 32) as u32, owner(*point));
            assert_eq!(points[..4].iter().map(as_pair).collect::<Vec<_>>(), first);
            assert_eq!(points.last().map(as_pair), Some(last));
            assert_eq!(as_pair(top), (u32::MAX, first[0].1));
            for (index, count) in counts.iter().enumerate() {
                assert_eq!(
                    points.iter().filter(|point| owner(**point) == index).count(),
                    *count
                );
            }
        }
    }

    #[test]
    fn a_number_belongs_to_the_first_point_at_or_after_it() {
        for nodes in [
            &[("a", 1.0)][..],
            &[("a", 1.0), ("b", 7.0), ("c", 0.0)],
            &[("a", 1.0); 50],
        ] {
            let circle = continuum(nodes);
            let edges = circle.points.iter().map(|point| (point >> 32) as u32);
            for hash in edges
                .flat_map(|v| [v.saturating_sub(1), v, v.saturating_add(1)])
                .chain([0, u32::MAX])
            {
                let expected = circle
                    .points
                    .iter()
                    .find(|point| (*point >> 32) as u32 >= hash)
                    .unwrap();
                assert_eq!(circle.owner_of(hash), owner(*expected), "{hash}");
                assert_eq!(circle.owners_from(hash).next(), Some(owner(*expected)), "{hash}");
            }
        }
    }

    #[test]
    fn a_server_of_next_to_no_weight_has_no_points() {
        let circle = continuum(&[("big", 1000.0), ("small", 1.0)]);
        assert!(circle.owners_from(7).all(|owner| owner == 0));
    }
}
