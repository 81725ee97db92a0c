//! Asks an ejected member whether it is well, on a connection of its own: as a lane would, from the transform
//! and the login to a question that changes nothing. Or has it drop all that it holds.

use std::{io, time::Duration};

use tokio::time::timeout;

use super::connection::Connection;
use crate::{members::Member, protocol::Question};

/// The longest time for a flush, as a time-out may be without end.
const FLUSH: Duration = Duration::from_secs(10);

/// Answers the member within its time-outs?
///
/// # Errors
/// It cannot be reached, is late, or answers an error or nonsense.
pub async fn probe(member: &Member) -> io::Result<()> {
    let connection = Connection::open(member).await?;
    within(member.timeout, ask(connection, member.protocol.probe())).await
}

/// Drops all that the member holds, if its protocol allows it.
///
/// # Errors
/// As those of [`probe`].
pub(in crate::control) async fn flush(member: &Member) -> io::Result<()> {
    let Some(flush) = member.protocol.copy_support().and_then(|copied| copied.flush()) else {
        return Ok(());
    };
    let asked = async { ask(Connection::open(member).await?, flush).await };
    within(member.timeout.min(FLUSH), asked).await
}

async fn within(limit: Duration, asked: impl Future<Output = io::Result<()>>) -> io::Result<()> {
    let late = |_| io::Error::from(io::ErrorKind::TimedOut);
    timeout(limit, asked).await.map_err(late)?
}

async fn ask(mut connection: Connection<'_>, (command, question): Question) -> io::Result<()> {
    connection.log_in().await?;
    connection.send(question).await?;
    let mut reply = Vec::new();
    match connection.receive(command, &mut reply).await?.is_error() {
        true => Err(io::Error::other("it answers an error")),
        false => Ok(()),
    }
}
