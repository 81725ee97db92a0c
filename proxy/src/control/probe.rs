//! Asks an ejected member whether it is well, on a connection of its own: as a lane would, from the transform
//! and the login to a question that changes nothing.

use std::io;

use tokio::time::timeout;

use super::connection::Connection;
use crate::members::Member;

/// Answers the member within its time-outs?
///
/// # Errors
/// It cannot be reached, is late, or answers an error or nonsense.
pub async fn probe(member: &Member) -> io::Result<()> {
    let connection = Connection::open(member).await?;
    let late = |_| io::Error::from(io::ErrorKind::TimedOut);
    timeout(member.timeout, ask(connection, member))
        .await
        .map_err(late)?
}

async fn ask(mut connection: Connection<'_>, member: &Member) -> io::Result<()> {
    connection.log_in().await?;
    let (command, question) = member.dialect.probe();
    connection.send(question).await?;
    let mut reply = Vec::new();
    match connection.receive(command, &mut reply).await?.is_error() {
        true => Err(io::Error::other("it answers an error")),
        false => Ok(()),
    }
}
