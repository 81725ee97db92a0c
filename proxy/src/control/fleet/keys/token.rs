//! The token of operators in a Secret of Kubernetes.

use std::fmt::Write;

use aws_lc_rs::rand;

use super::secret::{SecretError, keep, set};

/// The name of the part.
const PART: &str = "token";
/// Bytes of a token, before they are written as hexadecimal digits.
const BYTES: usize = 32;

/// Makes a token in the Secret of this name, in the namespace of this pod, unless one is there: it is never
/// replaced. Returns whether one was made.
///
/// # Errors
/// See [`SecretError`].
pub async fn keep_token(name: &str) -> Result<bool, SecretError> {
    let made = keep(name, |secret| {
        let found = secret["data"][PART].as_str();
        if found.is_some_and(|token| !token.is_empty()) {
            return Ok(None);
        }
        set(secret, PART, &random()?);
        Ok(Some(()))
    });
    Ok(made.await?.is_some())
}

fn random() -> Result<String, SecretError> {
    let mut bytes = [0; BYTES];
    rand::fill(&mut bytes).map_err(|_| SecretError::Random)?;
    Ok(bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a text never fails.
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

#[cfg(test)]
mod tests {
    use super::random;

    #[test]
    fn a_token_is_64_hexadecimal_digits_and_never_the_same() {
        let (one, other) = (random().unwrap(), random().unwrap());
        assert!(one.len() == 64 && one.bytes().all(|digit| digit.is_ascii_hexdigit()));
        assert_ne!(one, other);
    }
}
