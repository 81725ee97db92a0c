//! Keys in a Secret of Kubernetes.

use std::{collections::BTreeMap, fmt, sync::Arc};

use base64::{Engine, engine::general_purpose::STANDARD};
use hyper::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use time::OffsetDateTime;

use super::bundle::{BadKeys, Bundle, Due};
use crate::{
    control::surroundings::{
        dns::System,
        kubernetes::{Api, ApiFailure, SECRETS, own_namespace},
    },
    tls::Certificates,
};

/// Attempts to write a Secret that others write as well.
const ATTEMPTS: usize = 5;

/// The names of the parts.
const PARTS: [&str; 5] = ["ca.crt", "ca.key", "next-ca.key", "tls.crt", "tls.key"];

/// Keys cannot be kept in a Secret.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum SecretError {
    #[error("the API server: {0}")]
    Api(#[from] ApiFailure),
    #[error("the Secret {name}: {why}")]
    Bad { name: String, why: BadKeys },
    #[error("the Secret {0}: its `{1}` is no text in base64")]
    Part(String, &'static str),
    #[error("the Secret {0} is written by somebody else at the same time")]
    Changed(String),
    #[error("the system gives no random numbers")]
    Random,
}

/// Does what is due with the keys in the Secret of this name, in the namespace of this pod. `rotate`: and the next
/// step of the exchange of the authority. Returns what was done; `None`: nothing was due.
///
/// # Errors
/// See [`SecretError`].
pub async fn keep_keys(name: &str, rotate: bool) -> Result<Option<Due>, SecretError> {
    keep(name, |secret| {
        let mut bundle = read(secret).map_err(|part| SecretError::Part(name.to_owned(), part))?;
        let kept = bundle.keep(OffsetDateTime::now_utc(), rotate);
        let kept = kept.map_err(|why| SecretError::Bad {
            name: name.to_owned(),
            why,
        })?;
        if kept.is_some() {
            write(secret, &bundle);
        }
        Ok(kept)
    })
    .await
}

/// Changes the Secret of this name, in the namespace of this pod, or makes it. The change returns what was done with
/// it; `None`: it stays as it is. It is made anew where somebody else has written in between.
///
/// # Errors
/// See [`SecretError`].
pub(super) async fn keep<T>(
    name: &str,
    mut change: impl FnMut(&mut Value) -> Result<Option<T>, SecretError>,
) -> Result<Option<T>, SecretError> {
    let api = Api::new(Arc::<Certificates>::default());
    let namespace = own_namespace()?;
    let all = format!("/api/v1/namespaces/{namespace}/secrets");
    let one = format!("{all}/{}", utf8_percent_encode(name, NON_ALPHANUMERIC));
    let resolve = System::default().read();
    for _ in 0..ATTEMPTS {
        let needed = SECRETS.of(&namespace);
        let found = api.object(&resolve, &one, needed).await?;
        let (method, path) = match found {
            Some(_) => (Method::PUT, &one),
            None => (Method::POST, &all),
        };
        let mut secret = found.unwrap_or_else(|| {
            json!({
                "apiVersion": "v1",
                "kind": "Secret",
                "type": "Opaque",
                "metadata": {"name": name, "namespace": namespace},
            })
        });
        let Some(done) = change(&mut secret)? else {
            return Ok(None);
        };
        if api.write(&resolve, (method, path), &secret, needed).await? {
            return Ok(Some(done));
        }
    }
    Err(SecretError::Changed(name.to_owned()))
}

fn read(secret: &Value) -> Result<Bundle, &'static str> {
    let mut texts = BTreeMap::new();
    for part in PARTS {
        let encoded = secret["data"][part].as_str().unwrap_or_default();
        let text = STANDARD
            .decode(encoded)
            .ok()
            .and_then(|bytes| String::from_utf8(bytes).ok());
        texts.insert(part, text.ok_or(part)?);
    }
    let mut take = |part| texts.remove(part).unwrap_or_default();
    Ok(Bundle {
        authorities: take("ca.crt"),
        authority_key: take("ca.key"),
        next_key: take("next-ca.key"),
        certificate: take("tls.crt"),
        key: take("tls.key"),
    })
}

/// Parts that are empty are left out. What else is in the Secret stays.
fn write(secret: &mut Value, bundle: &Bundle) {
    let texts = [
        &bundle.authorities,
        &bundle.authority_key,
        &bundle.next_key,
        &bundle.certificate,
        &bundle.key,
    ];
    for (part, text) in PARTS.into_iter().zip(texts) {
        set(secret, part, text);
    }
}

/// Sets a part of a Secret, or removes it if it is empty.
pub(super) fn set(secret: &mut Value, part: &str, text: &str) {
    if !secret["data"].is_object() {
        secret["data"] = json!({});
    }
    if let Some(data) = secret["data"].as_object_mut() {
        data.remove(part);
        if !text.is_empty() {
            data.insert(part.to_owned(), json!(STANDARD.encode(text)));
        }
    }
}

/// What was done, in words.
impl fmt::Display for Due {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Made => "an authority and a certificate were made",
            Self::Renewed => "the certificate was made anew",
            Self::Trusted => {
                "a new authority is trusted beside the former one, which signs. Run this again once all peers have \
                 seen the Secret"
            }
            Self::Signed => {
                "the new authority has signed the certificate. Run this again once all peers have seen the Secret"
            }
            Self::Dropped => "the former authority is not trusted any more",
        })
    }
}
