//! Routing prefixes as they may be written: outer slashes may be missing.

/// `/region/cluster/`, whole. `None`: this is no routing prefix.
pub(super) fn routing_prefix(text: &str) -> Option<String> {
    let (before, after) = (
        if text.starts_with('/') { "" } else { "/" },
        if text.ends_with('/') { "" } else { "/" },
    );
    let whole = format!("{before}{text}{after}");
    match whole.split('/').collect::<Vec<_>>()[..] {
        ["", region, cluster, ""] if !region.is_empty() && !cluster.is_empty() => Some(whole),
        _ => None,
    }
}

/// Region and cluster of a whole routing prefix.
pub(super) fn region_and_cluster(whole: &str) -> Option<(&str, &str)> {
    whole.strip_prefix('/')?.strip_suffix('/')?.split_once('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outer_slashes_of_a_routing_prefix_may_be_missing() {
        for text in ["a/b", "/a/b", "a/b/", "/a/b/"] {
            assert_eq!(routing_prefix(text).as_deref(), Some("/a/b/"), "{text}");
        }
        for bad in [
            "", "/", "a", "/a", "a/", "/a/", "//", "//b/", "a//", "a/b/c", "//a/b/", "/a/b//",
        ] {
            assert_eq!(routing_prefix(bad), None, "{bad}");
        }
        assert_eq!(region_and_cluster("/./b/"), Some((".", "b")));
    }
}
