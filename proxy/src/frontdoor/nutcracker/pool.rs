//! Makes a listener and a pool of ours of a pool of the file.

use std::time::Duration;

use super::settings::{Distribution, Settings};
use crate::config::{
    Diagnostic,
    document::Node,
    reading::Reading,
    schema::{
        Access, Algorithm, Dedicated, Door, Eject, EjectBy, Hash, KeepAlive, Leaf, Listener, Login, OnEject,
        Password, PasswordSource, Permissions, PlainLogins, Pool, Protocol, ReplyStyle, Route, SocketOptions,
    },
};

/// A time that never comes, but may be added to a clock.
const NEVER: Duration = Duration::from_secs(1_000 * 86_400);

/// Reads the pool `name`.
pub(super) fn pool(
    name: &str,
    node: &Node,
    all_commands: bool,
    cx: &mut Reading,
) -> Result<(Listener, Pool), Diagnostic> {
    let mut settings = Settings::read(node, cx)?;
    let Some(listen) = settings.listen.take() else {
        return Err(cx
            .refuse(node.at, "`listen` is missing")
            .with_remedy("say where its clients connect, as `listen: 127.0.0.1:22121`"));
    };
    let Some(source) = settings.servers.take() else {
        return Err(cx
            .refuse(node.at, "`servers` is missing")
            .with_remedy("list its servers, as `- 10.0.0.1:11211:1`"));
    };
    let redis = settings.redis;
    let password = match settings.redis_auth.take() {
        Some((at, _)) if !redis => {
            return Err(cx
                .within("redis_auth", |cx| {
                    cx.refuse(at, "a password of a pool that is not Redis'")
                })
                .with_remedy("write `redis: true`, or leave it out"));
        }
        base => base.map(|(_, secret)| Password {
            source: PasswordSource::Inline,
            secret: Some(secret),
        }),
    };
    match settings.flush_on_return {
        Some(at) if redis => {
            return Err(cx
                .within("flush_on_return", |cx| cx.refuse(at, "a Redis is never flushed"))
                .with_remedy("leave it out"));
        }
        Some(at) if !settings.auto_eject_hosts => {
            cx.warn(
                at,
                "`flush_on_return` has no effect without `auto_eject_hosts: true`",
            );
        }
        _ => {}
    }
    if !redis && settings.redis_db > 0 {
        cx.warn(node.at, "`redis_db` has no effect without `redis: true`");
    }
    let protocol = if redis {
        Protocol::REDIS
    } else {
        Protocol::MEMCACHED
    };
    let listener = Listener {
        protocol,
        address: listen.address,
        route: Route::Leaf(Leaf::Pool(name.to_owned())),
        access: password.clone().map_or(Access::Open, Access::Password),
        permissions: Permissions {
            mode: listen.mode,
            owner: None,
        },
        socket: SocketOptions {
            backlog: settings.backlog,
            keepalive: settings.tcpkeepalive,
            shared: settings.reuseport,
        },
        discovery: None,
        reply_style: ReplyStyle::Twemproxy { all_commands },
        tls: None,
        server_version: None,
        door: Door::default(),
    };
    let timeout = match settings.timeout {
        0 => NEVER,
        millis => Duration::from_millis(u64::from(millis.unsigned_abs())),
    };
    let pool = Pool {
        protocol,
        hash: hash(&settings),
        timeout,
        connect_timeout: timeout,
        eject: eject(&settings),
        keep_routing_prefix: false,
        replicated: None,
        login: Login {
            user: None,
            password,
            database: if redis {
                settings.redis_db.unsigned_abs()
            } else {
                0
            },
        },
        one_writer: None,
        dedicated: Dedicated::DEFAULT,
        preconnect: settings.preconnect,
        keepalive: settings.tcpkeepalive.then(KeepAlive::default),
        asks_version: true,
        tls: None,
        plain_logins: PlainLogins::Rejected,
        plain: Vec::new(),
        source,
    };
    Ok((listener, pool))
}

fn hash(settings: &Settings) -> Hash {
    Hash {
        tag: settings.hash_tag,
        // Only mcrouter ends a key for hashing before `|#|`.
        stop: false,
        eject: if settings.auto_eject_hosts {
            OnEject::ShareAnew
        } else {
            OnEject::Fail
        },
        ..Hash::of(match settings.distribution {
            Distribution::Ketama => Algorithm::KetamaTwemproxy(settings.hash),
            Distribution::Modula => Algorithm::Modula(settings.hash),
            Distribution::Random => Algorithm::Random,
        })
    }
}

fn eject(settings: &Settings) -> Eject {
    let pause = Duration::from_millis(u64::from(settings.server_retry_timeout.unsigned_abs()));
    Eject {
        by: EjectBy::LostConnections,
        // The first failure ejects with a limit of 0 as with one of 1.
        failures: match settings.auto_eject_hosts {
            true => settings.server_failure_limit.unsigned_abs().max(1),
            false => 0,
        },
        probe_initial: pause,
        probe_max: pause,
        fail_open_above: 1.0,
        flush_on_return: settings.flush_on_return.is_some(),
    }
}
