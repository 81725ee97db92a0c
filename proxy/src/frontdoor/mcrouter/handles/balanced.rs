//! Routes by the load of servers. memcached reports no load, so all loads are equal: one algorithm is then a
//! hash of the key, and the other one chooses at random.

use crate::{
    config::{
        Diagnostic,
        reading::Reading,
        routes,
        schema::{Algorithm, Children, Hash, Route},
    },
    frontdoor::mcrouter::object::{Object, text, whole},
};

/// The parameters of LoadBalancerRoute.
pub(super) struct Balanced {
    hash: Hash,
    /// The number of children that are tried.
    tries: i32,
}

impl Default for Balanced {
    fn default() -> Self {
        Self {
            hash: Hash::of(Algorithm::Ch3),
            tries: 1,
        }
    }
}

impl Balanced {
    /// Reads the keys of an object.
    pub(super) fn read(object: &Object<'_>, cx: &mut Reading) -> Result<Self, Diagnostic> {
        let algorithm = object.take("algorithm", cx, |node, cx| match node.scalar() {
            Some("weighted-hashing") => Ok(Algorithm::Ch3),
            Some("two-random-choices") => Ok(Algorithm::Random),
            _ => Err(cx.expected(node, "\"weighted-hashing\" or \"two-random-choices\"")),
        })?;
        let hash = Hash {
            salt: object.take("salt", cx, text)?.unwrap_or_default(),
            ..Hash::of(algorithm.unwrap_or(Algorithm::Ch3))
        };
        let tries = object.take("failover_count", cx, whole(1))?.unwrap_or(1);
        for key in ["load_ttl_ms", "default_server_load_percent"] {
            if let Some(node) = object.get(key) {
                cx.warn(node.at, format!("`{key}` has no effect: servers tell no load"));
            }
        }
        Ok(Self { hash, tries })
    }

    /// The route over these children.
    pub(super) fn over(self, children: Children) -> Route {
        let Self { hash, tries } = self;
        let with_salt = |salt| {
            Route::of(
                routes::ByHash {
                    hash: Some(Hash { salt, ..hash.clone() }),
                },
                children.clone(),
            )
        };
        let first = with_salt(hash.salt.clone());
        if tries == 1 {
            return first;
        }
        let more = (1..tries).map(|number| with_salt(format!("{}{number}", hash.salt)));
        Route::of(
            routes::Failover {
                rules: Box::default(),
            },
            Children::List(std::iter::once(first).chain(more).collect()),
        )
    }
}
