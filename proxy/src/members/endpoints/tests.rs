//! Lists and watches as the API server sends them, good ones and bad ones.

use serde_json::{Value, json};

use super::{BadAnswer, Choice, Listing, Slices, bad_answer::LIMIT};
use crate::config::schema::ServicePort;

const PORT: ServicePort = ServicePort::Only;

/// An endpoint with this address and these conditions (ready, serving, terminating), of a pod of the same
/// name.
fn endpoint(address: &str, conditions: [Option<bool>; 3]) -> Value {
    let [ready, serving, terminating] = conditions;
    json!({
        "addresses": [address],
        "conditions": {"ready": ready, "serving": serving, "terminating": terminating},
        "nodeName": "n1", "zone": "z1",
        "targetRef": {"kind": "Pod", "name": format!("pod-{address}"), "uid": format!("uid-{address}")},
    })
}

const SERVES: [Option<bool>; 3] = [Some(true), Some(true), Some(false)];
const ENDS: [Option<bool>; 3] = [Some(false), Some(true), Some(true)];
const AWAY: [Option<bool>; 3] = [Some(false), Some(false), Some(false)];

fn slice_of(name: &str, service: &str, family: &str, endpoints: &[Value]) -> Value {
    json!({
        "metadata": {
            "name": name, "resourceVersion": "7", "labels": {"kubernetes.io/service-name": service},
        },
        "addressType": family, "endpoints": endpoints,
        "ports": [{"name": "mc", "port": 11211, "protocol": "TCP"}, {"name": "dns", "port": 53, "protocol": "UDP"}],
    })
}

fn slice(name: &str, endpoints: &[Value]) -> Value {
    slice_of(name, "mc", "IPv4", endpoints)
}

fn page(version: &str, more: &str, items: &[Value]) -> Vec<u8> {
    let list = json!({
        "kind": "EndpointSliceList", "apiVersion": "discovery.k8s.io/v1",
        "metadata": {"resourceVersion": version, "continue": more}, "items": items,
    });
    list.to_string().into_bytes()
}

fn listed(items: &[Value]) -> Result<Slices, BadAnswer> {
    let mut listing = Listing::of("mc");
    listing.page(&page("10", "", items))?;
    listing.whole(None)
}

fn line(kind: &str, object: &Value) -> Vec<u8> {
    json!({"type": kind, "object": object}).to_string().into_bytes()
}

/// The servers, each as its address, and `-` behind those that end, `?` behind those that are away.
fn shown(choice: &Choice) -> Vec<String> {
    let all = choice.list.endpoints().iter();
    let mark = |ends, is_away| match (ends, is_away) {
        (true, _) => "-",
        (_, true) => "?",
        _ => "",
    };
    all.map(|endpoint| format!("{}{}", endpoint.at, mark(endpoint.ends, endpoint.is_away)))
        .collect()
}

#[test]
fn a_server_serves_and_does_not_end_whatever_ready_says() {
    let published = [Some(true), Some(true), Some(true)];
    for (endpoints, expected, is_last_resort) in [
        (vec![endpoint("10.0.0.1", SERVES)], vec!["10.0.0.1:11211"], false),
        (
            vec![endpoint("10.0.0.1", [None, None, None])],
            vec!["10.0.0.1:11211"],
            false,
        ),
        (
            vec![endpoint("10.0.0.1", [Some(true), Some(false), None])],
            vec!["10.0.0.1:11211"],
            true,
        ),
        (
            vec![endpoint("10.0.0.1", SERVES), endpoint("10.0.0.2", AWAY)],
            vec!["10.0.0.1:11211", "10.0.0.2:11211?"],
            false,
        ),
        (
            vec![endpoint("10.0.0.1", SERVES), endpoint("10.0.0.2", ENDS)],
            vec!["10.0.0.1:11211", "10.0.0.2:11211-"],
            false,
        ),
        // The Service publishes addresses that are not ready.
        (
            vec![endpoint("10.0.0.1", published)],
            vec!["10.0.0.1:11211-"],
            false,
        ),
        (
            vec![endpoint("10.0.0.1", AWAY), endpoint("10.0.0.2", ENDS)],
            vec!["10.0.0.1:11211", "10.0.0.2:11211-"],
            true,
        ),
        (vec![], vec![], false),
    ] {
        let choice = listed(&[slice("a", &endpoints)]).unwrap().choose(&PORT);
        assert_eq!(
            (shown(&choice), choice.is_last_resort),
            (expected.iter().map(ToString::to_string).collect(), is_last_resort)
        );
    }
}

#[test]
fn all_slices_count_together_and_an_address_counts_once() {
    let first = slice("a", &[endpoint("10.0.0.1", ENDS), endpoint("10.0.0.2", SERVES)]);
    let second = slice("b", &[endpoint("10.0.0.1", SERVES)]);
    let choice = listed(&[first, second]).unwrap().choose(&PORT);
    assert_eq!(shown(&choice), ["10.0.0.1:11211", "10.0.0.2:11211"]);
    let [one, _] = choice.list.endpoints() else {
        panic!("{choice:?}")
    };
    let pod = one.pod.as_ref().unwrap();
    assert_eq!((&*pod.name, &*pod.uid), ("pod-10.0.0.1", "uid-10.0.0.1"));
    assert_eq!(
        (one.node.as_deref(), one.zone.as_deref()),
        (Some("n1"), Some("z1"))
    );
}

#[test]
fn of_two_families_the_fourth_version_is_used() {
    let six = slice_of("six", "mc", "IPv6", &[endpoint("fd00::1", SERVES)]);
    let four = slice("four", &[endpoint("10.0.0.1", SERVES)]);
    let empty = slice("empty", &[]);
    for (slices, expected) in [
        (vec![six.clone(), four], "10.0.0.1:11211"),
        (vec![six.clone(), empty], "[fd00::1]:11211"),
        (vec![six], "[fd00::1]:11211"),
    ] {
        assert_eq!(shown(&listed(&slices).unwrap().choose(&PORT)), [expected]);
    }
}

#[test]
fn a_port_is_the_only_one_or_is_named_or_is_a_number() {
    let mut object = slice("a", &[endpoint("10.0.0.1", SERVES)]);
    object["ports"] = json!([{"name": "one", "port": 1}, {"name": "two", "port": 2}]);
    let slices = listed(&[object]).unwrap();
    for (port, expected) in [
        (ServicePort::Only, None),
        (ServicePort::Name("two".into()), Some("10.0.0.1:2")),
        (ServicePort::Name("three".into()), None),
        (ServicePort::Number(3), Some("10.0.0.1:3")),
    ] {
        let choice = slices.choose(&port);
        assert_eq!(
            shown(&choice),
            expected.into_iter().collect::<Vec<_>>(),
            "{port:?}"
        );
        assert_eq!(choice.without_port, usize::from(expected.is_none()), "{port:?}");
    }
}

#[test]
fn a_watch_changes_slices_and_raises_the_version() {
    let mut slices = listed(&[slice("a", &[endpoint("10.0.0.1", SERVES)])]).unwrap();
    assert_eq!(slices.version(), "10");
    let at = |version: &str, mut object: Value| {
        object["metadata"]["resourceVersion"] = version.into();
        object
    };
    let b = slice("b", &[endpoint("10.0.0.2", SERVES)]);
    let mark = json!({"kind": "EndpointSlice", "metadata": {"resourceVersion": "14", "creationTimestamp": null}, "addressType": "", "endpoints": null});
    for (kind, object, is_new, expected, version) in [
        (
            "ADDED",
            at("11", b.clone()),
            true,
            vec!["10.0.0.1:11211", "10.0.0.2:11211"],
            "11",
        ),
        (
            "MODIFIED",
            at("12", b.clone()),
            false,
            vec!["10.0.0.1:11211", "10.0.0.2:11211"],
            "12",
        ),
        ("DELETED", at("13", b.clone()), true, vec!["10.0.0.1:11211"], "13"),
        ("BOOKMARK", mark, false, vec!["10.0.0.1:11211"], "14"),
        ("DELETED", at("15", b), false, vec!["10.0.0.1:11211"], "15"),
    ] {
        assert_eq!(slices.hear(&line(kind, &object)), Ok(is_new), "{kind}");
        assert_eq!(
            (shown(&slices.choose(&PORT)), slices.version()),
            (expected.iter().map(ToString::to_string).collect(), version),
            "{kind}"
        );
    }
}

#[test]
fn a_list_comes_in_pages_and_is_taken_whole() {
    let mut listing = Listing::of("mc");
    let first = page("10", "next", &[slice("a", &[endpoint("10.0.0.1", SERVES)])]);
    assert_eq!(listing.page(&first), Ok(Some("next".to_owned())));
    let second = page("10", "", &[slice("b", &[endpoint("10.0.0.2", SERVES)])]);
    assert_eq!(listing.page(&second), Ok(None));
    assert_eq!(
        listing.whole(None).unwrap().choose(&PORT).list.endpoints().len(),
        2
    );
}

#[test]
fn no_bad_answer_changes_anything() {
    let before = listed(&[slice("a", &[endpoint("10.0.0.1", SERVES)])]).unwrap();
    let object = slice("a", &[endpoint("10.0.0.2", SERVES)]);
    let status = |code: u16| json!({"kind": "Status", "code": code, "message": "said"});
    let many: Vec<Value> = (0..=LIMIT)
        .map(|number| {
            endpoint(
                &format!("10.{}.{}.{}", number >> 16, number >> 8 & 255, number & 255),
                SERVES,
            )
        })
        .collect();
    let whole = line("MODIFIED", &object);
    let mut lines: Vec<Vec<u8>> = (0..whole.len()).map(|cut| whole[..cut].to_vec()).collect();
    lines.extend([
        line("ERROR", &status(410)),
        line("ERROR", &status(500)),
        line("TOLD", &object),
        line("MODIFIED", &slice_of("a", "other", "IPv4", &[])),
        line("MODIFIED", &slice_of("a", "mc", "FQDN", &[])),
        line("MODIFIED", &slice("a", &[endpoint("fd00::1", SERVES)])),
        line("MODIFIED", &slice("a", &[endpoint("a.example", SERVES)])),
        line("MODIFIED", &slice("b", &many)),
        line("MODIFIED", &json!({})),
    ]);
    for line in lines {
        let mut slices = before.clone();
        let shown = String::from_utf8_lossy(&line[..line.len().min(200)]).into_owned();
        assert!(slices.hear(&line).is_err(), "{shown}");
        assert_eq!(slices, before, "{shown}");
    }
    assert!(matches!(
        before.clone().hear(&line("ERROR", &status(410))),
        Err(BadAnswer::Gone(_))
    ));
}

#[test]
fn no_bad_list_is_taken() {
    let known = listed(&[]).unwrap();
    let whole = page("10", "", &[slice("a", &[endpoint("10.0.0.1", SERVES)])]);
    for cut in 0..whole.len() {
        assert!(Listing::of("mc").page(&whole[..cut]).is_err());
    }
    let other = json!({"kind": "PodList", "metadata": {}, "items": []}).to_string();
    assert!(Listing::of("mc").page(other.as_bytes()).is_err());
    assert!(
        Listing::of("mc")
            .page(&page("10", "", &[slice_of("a", "mc", "FQDN", &[])]))
            .is_err()
    );
    for (version, is_taken) in [("9", false), ("10", true), ("11", true), ("x", true)] {
        let mut listing = Listing::of("mc");
        listing.page(&page(version, "", &[])).unwrap();
        assert_eq!(listing.whole(Some(&known)).is_ok(), is_taken, "{version}");
    }
}
