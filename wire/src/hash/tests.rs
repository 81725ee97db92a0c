//! Distributions as a whole: known answers of other programs, and properties of all kinds.

use proptest::prelude::*;

use super::*;

const KEYS: &str = include_str!("vectors/keys.txt");

fn nodes<'a>(members: &'a [(String, f64)]) -> Vec<Node<'a>> {
    members
        .iter()
        .map(|(name, weight)| Node {
            name,
            weight: *weight,
        })
        .collect()
}

/// `name=weight,name=weight,...`
fn parse_members(list: &str) -> Vec<(String, f64)> {
    list.split(',')
        .map(|member| {
            let (name, weight) = member.split_once('=').unwrap();
            (name.to_owned(), weight.parse().unwrap())
        })
        .collect()
}

/// The members of all test keys, one digit in base 36 each.
fn picks(distribution: &Distribution) -> String {
    let digit = |key: &str| char::from_digit(distribution.pick(key.as_bytes()) as u32, 36).unwrap();
    KEYS.lines().map(digit).collect()
}

/// The lines of a vector file without its header, in fields.
fn vectors(file: &str) -> impl Iterator<Item = Vec<&str>> {
    file.lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split(' ').collect())
}

#[test]
fn agrees_with_libmemcached() {
    let mut lines = 0;
    for fields in vectors(include_str!("vectors/libmemcached.txt")) {
        let [servers, expected] = fields[..] else {
            panic!("{fields:?}")
        };
        let mut members = parse_members(servers);
        for (name, _) in &mut members {
            *name = ketama_name(name, None).to_owned();
        }
        let ketama = Distribution::ketama(&nodes(&members), KeyHash::Md5).unwrap();
        assert_eq!(picks(&ketama), expected, "{servers}");
        lines += 1;
    }
    assert_eq!(lines, 7);
}

#[test]
fn agrees_with_nutcracker() {
    let mut lines = 0;
    for fields in vectors(include_str!("vectors/nutcracker.txt")) {
        let [distribution, hash, servers, expected] = fields[..] else {
            panic!("{fields:?}")
        };
        let members = parse_members(servers);
        assert!(members.is_sorted_by(|(a, _), (b, _)| twemproxy_order(a, b).is_lt()));
        let key_hash = KeyHash::from_name(hash).unwrap();
        let distribution = match distribution {
            "ketama" => Distribution::ketama(&nodes(&members), key_hash),
            _ => Distribution::modula(&nodes(&members), key_hash),
        };
        assert_eq!(picks(&distribution.unwrap()), expected, "{fields:?}");
        lines += 1;
    }
    assert_eq!(lines, 48);
}

#[test]
fn agrees_with_jump_over_xxh3() {
    let mut lines = 0;
    for fields in vectors(include_str!("vectors/jump.txt")) {
        let [members, expected] = fields[..] else {
            panic!("{fields:?}")
        };
        assert_eq!(
            picks(&Distribution::jump(members.parse().unwrap()).unwrap()),
            expected,
            "{members}"
        );
        lines += 1;
    }
    assert_eq!(lines, 4);
}

#[test]
fn agrees_with_mcrouter_on_crc32_and_const_shard() {
    let long = "a".repeat(200);
    let sizes = [2, 3, 5, 10, 16, 100, 1000];
    let crc32: [(&str, [usize; 7]); 7] = [
        ("key0", [0, 2, 4, 4, 6, 34, 134]),
        ("key1", [0, 1, 1, 6, 0, 96, 496]),
        ("key2", [0, 2, 0, 0, 10, 10, 810]),
        ("foo", [1, 0, 1, 1, 1, 21, 121]),
        ("abc:12:def", [0, 1, 0, 0, 6, 10, 510]),
        ("user:1000", [1, 1, 2, 7, 3, 87, 987]),
        (&long, [0, 1, 1, 6, 8, 96, 296]),
    ];
    for (key, answers) in crc32 {
        for (size, answer) in sizes.into_iter().zip(answers) {
            assert_eq!(
                Distribution::crc32(size).unwrap().pick(key.as_bytes()),
                answer,
                "{key} of {size}"
            );
        }
    }
    let const_shard = [
        ("abc:12:def", 12, 0),
        ("abc:9:def", 9, 9),
        ("abc:16:x", 10, 4),
        ("abc:1", 14, 6),
        ("abc::x", 3, 3),
        ("abc:x:1:", 7, 7),
    ];
    for (key, of_16, of_10) in const_shard {
        assert_eq!(
            Distribution::const_shard(16).unwrap().pick(key.as_bytes()),
            of_16,
            "{key}"
        );
        assert_eq!(
            Distribution::const_shard(10).unwrap().pick(key.as_bytes()),
            of_10,
            "{key}"
        );
    }
}

/// twemproxy's documented examples by server name, fnv1a_64.
#[test]
fn agrees_with_twemproxy_on_the_documented_keys() {
    let many = [b'k'; 250];
    let keys: [&[u8]; 10] = [
        b"a",
        b"key",
        b"foo",
        b"key1",
        b"hello world",
        b"user:1000",
        b"{tag}suffix",
        b"0123456789abcdef",
        b"caf\xc3\xa9",
        &many,
    ];
    let table = [
        (
            "127.0.0.1:22121=1,127.0.0.1:22122=1",
            [1, 0, 0, 1, 0, 1, 1, 0, 1, 0],
            [0, 0, 1, 1, 1, 1, 0, 1, 1, 1],
        ),
        (
            "s1=1,s2=2,s3=3",
            [2, 1, 2, 2, 0, 2, 1, 2, 2, 2],
            [2, 2, 2, 1, 2, 2, 1, 2, 2, 1],
        ),
        (
            "server1=1,server2=1,server3=1",
            [2, 1, 0, 0, 1, 0, 1, 0, 0, 0],
            [1, 1, 2, 1, 2, 2, 2, 0, 2, 1],
        ),
    ];
    for (servers, ketama, modula) in table {
        let members = parse_members(servers);
        let picks = |distribution: Distribution| keys.map(|key| distribution.pick(key));
        assert_eq!(
            picks(Distribution::ketama(&nodes(&members), KeyHash::Fnv1a64).unwrap()),
            ketama
        );
        assert_eq!(
            picks(Distribution::modula(&nodes(&members), KeyHash::Fnv1a64).unwrap()),
            modula
        );
    }
}

/// One distribution of each kind over members `m0`, `m1`, ... with these weights, which are whole numbers.
fn all_kinds(weights: &[f64]) -> Vec<Distribution> {
    let heaviest = weights.iter().copied().fold(0.0, f64::max);
    let named = |weight: &dyn Fn(f64) -> f64| -> Vec<(String, f64)> {
        weights
            .iter()
            .enumerate()
            .map(|(i, w)| (format!("m{i}"), weight(*w)))
            .collect()
    };
    let (members, parts) = (named(&|w| w), named(&|w| w / heaviest));
    let (nodes, parts) = (nodes(&members), nodes(&parts));
    [
        Distribution::ketama(&nodes, KeyHash::Fnv1a64),
        Distribution::ketama(&nodes, KeyHash::Md5),
        Distribution::modula(&nodes, KeyHash::Murmur),
        Distribution::ch3(nodes.len()),
        Distribution::weighted_ch3(&parts),
        Distribution::crc32(nodes.len()),
        Distribution::const_shard(nodes.len()),
        Distribution::rendezvous(&nodes),
        Distribution::weighted_rendezvous(&nodes),
        Distribution::jump(nodes.len()),
    ]
    .map(Result::unwrap)
    .into()
}

fn weights() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec((0u32..5).prop_map(f64::from), 1..24).prop_filter("some weight", |weights| {
        weights.iter().any(|weight| *weight > 0.0)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn pick_names_a_member_and_always_the_same(weights in weights(), key: Vec<u8>) {
        for (kind, again) in all_kinds(&weights).iter().zip(all_kinds(&weights)) {
            let member = kind.pick(&key);
            prop_assert!(member < weights.len(), "{:?}", kind);
            prop_assert_eq!(member, again.pick(&key), "{:?}", kind);
            prop_assert_eq!(kind.pick_live(&key, |_| true).is_some(), true, "{:?}", kind);
        }
    }

    /// Keys of live members stay. If one set of live members contains another, the choice from the larger one
    /// stands in the smaller one wherever it is live.
    #[test]
    fn ejection_moves_only_keys_of_the_ejected(
        weights in weights(),
        fates in prop::collection::vec(0u8..3, 24),
        key: Vec<u8>,
    ) {
        let (some, few) = (|member: usize| fates[member] > 0, |member: usize| fates[member] > 1);
        for kind in all_kinds(&weights) {
            let own = kind.pick(&key);
            let (one, other) = (kind.pick_live(&key, some), kind.pick_live(&key, few));
            prop_assert!(one.is_none_or(some) && other.is_none_or(few));
            prop_assert_eq!(kind.pick_live(&key, |_| false), None);
            for (larger, smaller, live) in [(Some(own), one, &some as &dyn Fn(usize) -> bool), (one, other, &few)] {
                if let Some(member) = larger.filter(|member| live(*member) && weights[*member] > 0.0) {
                    prop_assert_eq!(smaller, Some(member), "{:?}", kind);
                }
            }
        }
    }

    #[test]
    fn a_member_that_leaves_takes_only_its_own_keys(
        members in 2usize..24, leaver: prop::sample::Index, keys in prop::collection::vec(any::<Vec<u8>>(), 50),
    ) {
        let leaver = leaver.index(members);
        let all: Vec<(String, f64)> = (0..members).map(|i| (format!("m{i}"), 1.0)).collect();
        let mut rest = all.clone();
        rest.remove(leaver);
        let ketama = |members: &[(String, f64)]| Distribution::ketama(&nodes(members), KeyHash::Fnv1a64).unwrap();
        let rendezvous = |members: &[(String, f64)]| Distribution::rendezvous(&nodes(members)).unwrap();
        let weighted = |members: &[(String, f64)]| Distribution::weighted_rendezvous(&nodes(members)).unwrap();
        let by_name = [
            (ketama(&all), ketama(&rest)),
            (rendezvous(&all), rendezvous(&rest)),
            (weighted(&all), weighted(&rest)),
        ];
        let by_number = [
            (Distribution::jump(members).unwrap(), Distribution::jump(members - 1).unwrap()),
            (Distribution::ch3(members).unwrap(), Distribution::ch3(members - 1).unwrap()),
        ];
        for key in &keys {
            for (before, after) in &by_name {
                let owner = before.pick(key);
                if owner != leaver {
                    prop_assert_eq!(&all[owner].0, &rest[after.pick(key)].0);
                }
                // A member that leaves for good and one that is ejected lose their keys to the same members.
                let ejected = before.pick_live(key, |member| member != leaver).unwrap();
                prop_assert_eq!(&all[ejected].0, &rest[after.pick(key)].0);
            }
            for (before, after) in &by_number {
                let owner = before.pick(key);
                if owner != members - 1 {
                    prop_assert_eq!(owner, after.pick(key));
                }
            }
        }
    }
}

#[test]
fn shares_follow_weights_also_of_the_keys_that_were_ejected() {
    const KEYS: usize = 40_000;
    let weights = [1.0, 2.0, 4.0, 0.0, 1.0];
    for (kind, distribution) in all_kinds(&weights).iter().enumerate() {
        let count = |is_live: &dyn Fn(usize) -> bool| {
            let mut counts = [0usize; 5];
            for i in 0..KEYS {
                counts[distribution
                    .pick_live(format!("key:{i}").as_bytes(), is_live)
                    .unwrap()] += 1;
            }
            counts
        };
        let (before, after) = (count(&|_| true), count(&|member| member != 2));
        assert_eq!(after[2], 0);
        let weighted = [0, 1, 2, 4, 8].contains(&kind);
        for member in 0..5 {
            if weighted && weights[member] == 0.0 {
                assert_eq!((before[member], after[member]), (0, 0), "kind {kind}");
            } else {
                let weight = |member: usize| if weighted { weights[member] } else { 1.0 };
                let share = |total: f64| (weight(member) / total * KEYS as f64) as usize;
                let total: f64 = (0..5).map(weight).sum();
                // Ketama's points are themselves random: with 160 points the spread is about a tenth.
                let slack = |share: usize| share / if kind < 2 { 3 } else { 10 };
                let (all, rest) = (share(total), share(total - weight(2)));
                assert!(
                    before[member].abs_diff(all) <= slack(all),
                    "kind {kind}: {before:?}"
                );
                if member != 2 {
                    assert!(
                        after[member].abs_diff(rest) <= slack(rest),
                        "kind {kind}: {after:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn one_member_has_every_key() {
    for kind in all_kinds(&[1.0]) {
        assert_eq!(kind.pick(b"key"), 0);
        assert_eq!(kind.pick_live(b"key", |_| true), Some(0));
        assert_eq!(kind.pick_live(b"key", |_| false), None);
    }
}

#[test]
fn members_that_cannot_share_are_refused() {
    use DistributionError::{NoMembers, NoWeight, SameName, TooManyMembers, TooMuchWeight, Weight};
    let make = |kind: usize, weights: &[f64]| {
        let members: Vec<(String, f64)> = weights
            .iter()
            .enumerate()
            .map(|(i, w)| (format!("m{i}"), *w))
            .collect();
        let nodes = nodes(&members);
        match kind {
            0 => Distribution::ketama(&nodes, KeyHash::Md5),
            1 => Distribution::modula(&nodes, KeyHash::Md5),
            2 => Distribution::weighted_ch3(&nodes),
            _ => Distribution::weighted_rendezvous(&nodes),
        }
        .err()
    };
    for kind in 0..4 {
        assert_eq!(make(kind, &[]), Some(NoMembers));
        assert_eq!(make(kind, &[0.0, 0.0]), Some(NoWeight));
        for bad in [-1.0, f64::NAN, f64::INFINITY] {
            assert!(
                matches!(make(kind, &[1.0, bad]), Some(Weight { member: 1, .. })),
                "{kind} {bad}"
            );
        }
        assert_eq!(
            make(kind, &vec![1.0; MAX_MEMBERS + 1]),
            Some(TooManyMembers(MAX_MEMBERS + 1))
        );
    }
    assert_eq!(make(0, &[1e-40, 1e-40]), Some(NoWeight));
    assert_eq!(make(0, &[3e38, 3e38]), Some(TooMuchWeight));
    assert_eq!(make(1, &[4294967295.0, 1.0]), Some(TooMuchWeight));
    assert!(matches!(make(1, &[0.5, 1.0]), Some(Weight { member: 0, .. })));
    assert!(matches!(make(2, &[0.5, 1.5]), Some(Weight { member: 1, .. })));
    assert_eq!(Distribution::ch3(0).err(), Some(NoMembers));
    assert_eq!(
        Distribution::jump(MAX_MEMBERS + 1).err(),
        Some(TooManyMembers(MAX_MEMBERS + 1))
    );

    let twins = [("a", 1.0), ("b", 1.0), ("a", 2.0)].map(|(name, weight)| Node { name, weight });
    assert_eq!(
        Distribution::ketama(&twins, KeyHash::Md5).err(),
        Some(SameName(0, 2))
    );
    assert_eq!(Distribution::rendezvous(&twins).err(), Some(SameName(0, 2)));
    assert_eq!(
        Distribution::weighted_rendezvous(&twins).err(),
        Some(SameName(0, 2))
    );
    assert!(Distribution::modula(&twins, KeyHash::Md5).is_ok());
}

proptest! {
    #[test]
    fn four_keys_go_where_each_goes_alone(keys: [Vec<u8>; 4], members in 1_usize..9) {
        let names: Vec<String> = (0..members).map(|number| format!("s{number}")).collect();
        let nodes: Vec<Node<'_>> = names.iter().map(|name| Node { name, weight: 1.0 }).collect();
        let keys = keys.each_ref().map(Vec::as_slice);
        for hash in KeyHash::ALL {
            let ketama = Distribution::ketama(&nodes, hash).unwrap();
            prop_assert_eq!(ketama.pick_four(keys), keys.map(|key| ketama.pick(key)), "{:?}", hash);
        }
        let jump = Distribution::jump(members).unwrap();
        prop_assert_eq!(jump.pick_four(keys), keys.map(|key| jump.pick(key)));
    }
}
