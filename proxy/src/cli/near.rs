//! `proxima near`: the near cache of a running proxy, and operators' orders for it.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt,
};

use hyper::Method;
use percent_encoding::{NON_ALPHANUMERIC, percent_encode};

use super::{
    Answer,
    admin::{Admin, AskError, ask, get, shown},
    args::{AdminPort, Near},
    near_table::{dropped, status, top},
};
use crate::control::{NearStatus, NearTop};

/// The word that stands for the memory in place of a rule.
const MEMORY: &str = "memory";

/// Does what this command says.
pub(super) fn near(command: Near) -> Answer {
    match command {
        Near::List { at, json } => {
            let asked = get(at, "/near");
            shown(asked, json, |all: &NearStatus| status(all, None))
        }
        Near::Set {
            rule,
            values,
            keep,
            at,
        } => match settings(&rule, &values) {
            Ok(pairs) => {
                let only = (rule != MEMORY || values.len() > 1).then_some(&*rule);
                changed(at, "/near/set", pairs, keep, only)
            }
            Err(error) => Answer::bad(1, format!("proxima: {error}")),
        },
        Near::On { rule, ttl, keep, at } => {
            let mut pairs = vec![("rule".to_owned(), bytes(&rule))];
            pairs.extend(ttl.map(|ttl| ("ttl".to_owned(), ttl.into_bytes())));
            changed(at, "/near/on", pairs, keep, Some(&rule))
        }
        Near::Off { rule, keep, at } => {
            let pairs = vec![("rule".to_owned(), bytes(&rule))];
            changed(at, "/near/off", pairs, keep, Some(&rule))
        }
        Near::Drop {
            rule,
            key,
            prefix,
            all,
            at,
        } => {
            let meant = |name: &str, value: Option<OsString>| {
                let value = value?.as_bytes().to_vec();
                Some((name.to_owned(), value))
            };
            let mut pairs = vec![("rule".to_owned(), bytes(&rule))];
            pairs.extend(meant("key", key));
            pairs.extend(meant("prefix", prefix));
            pairs.extend(all.then(|| ("all".to_owned(), b"1".to_vec())));
            let asked = post(at, "/near/drop", &pairs);
            shown(asked, false, |answer: &serde_json::Value| dropped(answer, &rule))
        }
        Near::Top {
            rule,
            count,
            json,
            at,
        } => {
            let mut path = format!("/near/top?count={count}");
            if let Some(rule) = &rule {
                path.push_str("&rule=");
                path.push_str(&escaped(OsStr::new(rule)));
            }
            shown(get(at, &path), json, |keys: &Vec<NearTop>| top(keys))
        }
        Near::Explain { rule, key, at } => {
            let (rule, key) = (escaped(OsStr::new(&rule)), escaped(&key));
            match get(at, &format!("/near/explain?rule={rule}&key={key}")) {
                Ok(text) => Answer::good(text),
                Err(error) => Answer::bad(1, format!("proxima: {error}")),
            }
        }
    }
}

/// Names with values of a query.
type Pairs = Vec<(String, Vec<u8>)>;

/// The settings of a command as pairs of a query.
fn settings(rule: &str, values: &[String]) -> Result<Pairs, String> {
    if let (MEMORY, [size]) = (rule, values) {
        return Ok(vec![(MEMORY.to_owned(), bytes(size))]);
    }
    let pairs = values.chunks_exact(2);
    if let [alone] = pairs.remainder() {
        return Err(format!(
            "`{}` has no value: `proxima near set {rule} SETTING VALUE …`, as in `ttl 10s`",
            alone.escape_debug()
        ));
    }
    let mut query = vec![("rule".to_owned(), bytes(rule))];
    for pair in pairs {
        let [name, value] = pair else { continue };
        let is_word = !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !is_word || query.iter().any(|(other, _)| other == name) || name == "keep" || name == MEMORY {
            return Err(format!(
                "`{}` cannot be set here: a rule has `ttl`, `stale`, `stale_on_error`, `negative`, `largest` \
                 and `jitter`, each at most once",
                name.escape_debug()
            ));
        }
        query.push((name.clone(), bytes(value)));
    }
    Ok(query)
}

fn bytes(text: &str) -> Vec<u8> {
    text.as_bytes().to_vec()
}

fn escaped(text: &OsStr) -> String {
    percent_encode(text.as_bytes(), NON_ALPHANUMERIC).to_string()
}

fn post(at: AdminPort, path: &str, pairs: &[(String, Vec<u8>)]) -> Result<String, AskError> {
    let pairs: Vec<String> = pairs
        .iter()
        .map(|(name, value)| format!("{name}={}", percent_encode(value, NON_ALPHANUMERIC)))
        .collect();
    let path = format!("{path}?{}", pairs.join("&"));
    ask(&Admin::of(at), Method::POST, &path)
}

/// Orders something, and shows what follows from it for this rule, or for all.
fn changed(at: AdminPort, path: &str, mut pairs: Pairs, keep: bool, rule: Option<&str>) -> Answer {
    if keep {
        pairs.push(("keep".to_owned(), b"1".to_vec()));
    }
    shown(post(at, path, &pairs), false, |all: &NearStatus| {
        status(all, rule)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(rule: &str, values: &[&str]) -> Result<Pairs, String> {
        let values: Vec<String> = values.iter().map(|&value| value.to_owned()).collect();
        settings(rule, &values)
    }

    #[test]
    fn settings_come_in_pairs_and_memory_alone() {
        let pair = |name: &str, value: &str| (name.to_owned(), bytes(value));
        assert_eq!(query("memory", &["1MiB"]), Ok(vec![pair("memory", "1MiB")]));
        assert_eq!(
            query("maps", &["ttl", "10s", "stale", "5s"]),
            Ok(vec![
                pair("rule", "maps"),
                pair("ttl", "10s"),
                pair("stale", "5s")
            ])
        );
        assert_eq!(
            query("memory", &["ttl", "1s"]),
            Ok(vec![pair("rule", "memory"), pair("ttl", "1s")]),
            "a rule may have that name"
        );
        for (values, told) in [
            (&["ttl"][..], "`ttl` has no value"),
            (&["ttl", "1s", "ttl", "2s"], "`ttl` cannot be set here"),
            (&["keep", "1"], "`keep` cannot be set here"),
            (&["a&b", "1"], "`a&b` cannot be set here"),
        ] {
            let said = query("maps", values).unwrap_err();
            assert!(said.contains(told), "{values:?}: {said}");
        }
    }
}
