//! The file of users.

use std::path::PathBuf;

use super::events;
use crate::config::{
    Diagnostic,
    document::Node,
    form::{ByName, Count, Form, Optional, PathText, Shape, Text, Word},
    reading::Reading,
    routes::UserName,
    schema::Consistency,
    section::section,
};

section! {
    /// A user: exactly one of these says what is known of the password.
    #[short(password)]
    pub(super) struct UserKeys {
        /// The password.
        password: Optional<Text>,
        /// A file with the password, relative to the file of users.
        password_file: Optional<PathText>,
        /// The hash of the password as `mysql.user` shows it for `mysql_native_password`: `*` and forty
        /// hexadecimal digits.
        native_hash: Optional<NativeHash>,
        /// The most clients of this process that may be this user at a time. Further ones are answered with
        /// error 1203. Without it there is no limit.
        clients: Optional<Count<1>>,
        /// How fresh the user's reads are, whatever the listener says. A route that says it counts for more.
        consistency: Optional<Word<Consistency>>,
    }
}

/// The hash of a password.
#[derive(Debug)]
pub(super) struct NativeHash;

impl Form for NativeHash {
    type Value = String;

    fn shape() -> Shape {
        Shape::Text {
            what: "hash of a password",
            pattern: Some("^\\*[0-9A-Fa-f]{40}$"),
        }
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<String, Diagnostic> {
        let text = node.scalar().unwrap_or_default();
        match proxima_wire::mysql::password::NativeHash::read(text.as_bytes()) {
            Some(_) => Ok(text.to_owned()),
            // What stands there may be a password.
            None => Err(cx
                .refuse(node.at, "this is not `*` and forty hexadecimal digits")
                .with_remedy("it is what `SELECT authentication_string FROM mysql.user` shows")),
        }
    }
}

/// Where what is known of a user's password is.
#[derive(Debug)]
pub(in crate::config) enum UserSecret {
    /// It is this.
    Said(String),
    /// It is in this file.
    File(PathBuf),
}

/// A user as it stands in the file.
#[derive(Debug)]
pub(in crate::config) struct ReadUser {
    pub(in crate::config) secret: UserSecret,
    pub(in crate::config) clients: Option<u32>,
    pub(in crate::config) consistency: Option<Consistency>,
}

/// A user.
#[derive(Debug)]
pub(super) struct UserForm;

impl Form for UserForm {
    type Value = ReadUser;

    fn shape() -> Shape {
        UserKeys::shape()
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<ReadUser, Diagnostic> {
        let UserKeys {
            password,
            password_file,
            native_hash,
            clients,
            consistency,
        } = UserKeys::read(node, cx)?;
        let secret = match (password.or(native_hash.clone()), password_file, native_hash) {
            (Some(said), None, None) if !said.is_empty() => UserSecret::Said(said),
            (Some(said), None, Some(hash)) if said == hash => UserSecret::Said(said),
            (None, Some(file), None) => UserSecret::File(file),
            _ => {
                return Err(cx
                    .refuse(
                        node.at,
                        "a user needs one of `password`, `password_file` and `native_hash`",
                    )
                    .with_remedy("write `NAME: {password_file: PATH}`"));
            }
        };
        Ok(ReadUser {
            secret,
            clients,
            consistency,
        })
    }
}

/// Reads such a file.
pub(in crate::config) fn parse_users(
    text: &str,
    cx: &mut Reading,
) -> Result<Vec<(String, ReadUser)>, Diagnostic> {
    let users = ByName::<UserForm, UserName>::read(&events::parse(text)?, cx)?;
    Ok(users.into_iter().map(|(name, user)| (name.text, user)).collect())
}
