//! Checks of protocols: no route joins two of them.

use crate::config::{
    Diagnostic,
    operations::is_word_of,
    reading::Index,
    routes::Keyed,
    schema::{Config, Protocol, Route},
};

/// Each listener whose route chooses by an operation of another protocol, or by what its clients do not say.
pub(super) fn operations(config: &Config, index: &Index) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    for (listener, site) in config.listeners.iter().zip(&index.listeners) {
        let protocol = listener.protocol;
        for route in config.routes_below(&listener.route) {
            let of = match route {
                Route::Keyed(keyed, ..) => keyed.of_login(),
                _ => None,
            };
            if let Some(of) = of
                && protocol != Protocol::MYSQL
            {
                let problem = format!(
                    "its route chooses by {}, and clients of {} have none",
                    of.noun(),
                    protocol.0
                );
                let remedy = format!("take `{}` away: it is for MySQL", of.route());
                diagnostics.push(site.refuse(problem).with_remedy(remedy));
            }
            let Route::Keyed(Keyed::ByOperation(_), operations, _) = route else {
                continue;
            };
            let words = operations.iter().map(|(word, _)| word);
            for word in words.filter(|word| !is_word_of(protocol, word)) {
                let problem = format!(
                    "its route chooses by `{word}`, which is no operation of {}",
                    protocol.0
                );
                let remedy = "name commands of that protocol that have a key, or groups of them: read, write, delete, \
                              arithmetic, touch";
                diagnostics.push(site.refuse(problem).with_remedy(remedy));
            }
        }
    }
    diagnostics
}

/// Each listener whose route leads to a pool of another protocol.
pub(super) fn joined(config: &Config, index: &Index) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    for (listener, site) in config.listeners.iter().zip(&index.listeners) {
        for (name, pool) in config.pools_below(&listener.route) {
            if pool.protocol != listener.protocol {
                let (ours, theirs) = (listener.protocol.0, pool.protocol.0);
                let problem = format!(
                    "its clients speak {ours}, and its route leads to pool `{name}`, which speaks {theirs}"
                );
                let remedy = format!("give the listener `protocol: {theirs}`, or lead it to pools of {ours}");
                diagnostics.push(site.refuse(problem).with_remedy(remedy));
            }
        }
    }
    diagnostics
}

#[cfg(test)]
mod tests {
    use crate::config::{reading::Reading, schema::Protocol, yaml};

    /// The mistakes in a file whose pool `b` has another protocol.
    fn joined(routes: &str, first: &str) -> Vec<String> {
        let text = format!(
            "pools: {{a: [\"10.0.0.1:1\"], b: [{{address: \"10.0.0.2:1\", name: x}}]}}\nroutes: {{{routes}}}\n\
             listeners:\n  - {{address: \"127.0.0.1:1\", route: {first}}}\n  - {{address: \"127.0.0.1:2\", route: b}}\n"
        );
        let mut cx = Reading::default();
        let mut config = yaml::parse(&text, &mut cx).unwrap();
        config.listeners[1].protocol = Protocol("other");
        config.pools.get_mut("b").unwrap().protocol = Protocol("other");
        let diagnostics = super::joined(&config, &cx.index);
        diagnostics.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_listener_whose_route_leads_to_a_pool_of_another_protocol_is_refused() {
        for (routes, first, refused) in [
            ("", "a", false),
            ("", "b", true),
            ("", "{member: b/x}", true),
            ("", "{failover: [a, {nearest: b}]}", true),
            (
                "c: {log: d}, d: {by_prefix: {prefixes: {k: a}, default: b}}",
                "c",
                true,
            ),
            ("c: {hash: {children: a}}", "{all_sync: [c, c]}", false),
        ] {
            let found = joined(routes, first);
            assert_eq!(!found.is_empty(), refused, "{routes} {first}: {found:?}");
            assert!(
                found.iter().all(|text| text.contains("4:")
                    && text.contains(
                        "its clients speak memcached, and its route leads to pool `b`, which speaks other"
                    )
                    && text
                        .contains("give the listener `protocol: other`, or lead it to pools of memcached")),
                "{found:?}"
            );
        }
    }
}
