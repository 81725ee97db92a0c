//! Keys about logins: of a pool at its servers, and of clients at a listener.

use std::path::PathBuf;

use crate::config::{
    Diagnostic, Place,
    document::Node,
    form::{Choice, Form, Shape},
    reading::Reading,
    schema::{Access, Login, Password, PasswordSource, PlainLogins},
};

/// What checks the login of a listener's clients beside the listener itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Checker {
    Server,
}

impl Choice for Checker {
    const WHAT: &'static str = "a way to log in";
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[(
        "pass",
        Self::Server,
        "a client's AUTH goes to a server, whose own rules hold for what the client asks",
    )];
}

impl Choice for PlainLogins {
    const WHAT: &'static str = "what becomes of a password where there is no TLS";
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("rejected", Self::Rejected, "it is not sent: the login needs TLS"),
        (
            "rsa",
            Self::Rsa,
            "it is encrypted with the key that the other end offers, which an attacker between the two can replace \
             by its own",
        ),
    ];
}

/// The name of a variable of the environment.
#[derive(Debug)]
pub(super) struct VariableName;

impl Form for VariableName {
    type Value = String;

    fn shape() -> Shape {
        Shape::Text {
            what: "name of a variable",
            pattern: Some("^[A-Za-z_][A-Za-z0-9_]*$"),
        }
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<String, Diagnostic> {
        let text = node.scalar().unwrap_or_default();
        let is_name = text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && text.starts_with(|first: char| !first.is_ascii_digit());
        match is_name {
            true => Ok(text.to_owned()),
            false => Err(cx
                .expected(node, "the name of a variable of the environment")
                .with_remedy("a password itself does not stand in a configuration")),
        }
    }
}

/// The password that is in a file or in a variable; `None`: it is in neither.
fn password(
    file: Option<PathBuf>,
    variable: Option<String>,
    at: Place,
    cx: &Reading,
) -> Result<Option<Password>, Diagnostic> {
    let source = match (file, variable) {
        (Some(_), Some(_)) => {
            return Err(cx
                .refuse(at, "`password_file` and `password_env` both name a password")
                .with_remedy("leave one of them out"));
        }
        (Some(file), None) => PasswordSource::File(file),
        (None, Some(variable)) => PasswordSource::Variable(variable),
        (None, None) => return Ok(None),
    };
    let secret = None;
    Ok(Some(Password { source, secret }))
}

/// The login of a pool at its servers.
pub(super) fn login(
    user: Option<String>,
    (file, variable): (Option<PathBuf>, Option<String>),
    database: u32,
    at: Place,
    cx: &Reading,
) -> Result<Login, Diagnostic> {
    let password = password(file, variable, at, cx)?;
    if user.is_some() && password.is_none() {
        return Err(cx
            .refuse(at, "`user` needs a password")
            .with_remedy("write `password_file: PATH` or `password_env: NAME`"));
    }
    Ok(Login {
        user,
        password,
        database,
    })
}

/// What the clients of a listener must say.
pub(super) fn access(
    auth: Option<Checker>,
    (file, variable): (Option<PathBuf>, Option<String>),
    at: Place,
    cx: &Reading,
) -> Result<Access, Diagnostic> {
    match (auth, password(file, variable, at, cx)?) {
        (None, None) => Ok(Access::Open),
        (None, Some(password)) => Ok(Access::Password(password)),
        (Some(Checker::Server), None) => Ok(Access::Pass),
        (Some(Checker::Server), Some(_)) => Err(cx
            .refuse(at, "with `auth: pass` the servers know the passwords")
            .with_remedy("leave out either `auth` or the listener's own password")),
    }
}
