//! Raft's messages, over the channels of the fleet. A voter is found by its identity, wherever it is now: the
//! address at which it became a voter is only the first guess.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use openraft::{
    BasicNode, RaftNetwork, RaftNetworkFactory,
    error::{InstallSnapshotError, NetworkError, RPCError, RaftError, RemoteError, Unreachable},
    network::RPCOption,
    raft::{
        AppendEntriesRequest, AppendEntriesResponse, InstallSnapshotRequest, InstallSnapshotResponse,
        VoteRequest, VoteResponse,
    },
};

use super::Node;
use crate::control::fleet::{
    book::Book,
    links::Links,
    message::{Message, RaftMessage, RaftReply, Reply},
    types::Types,
};

/// Connections to all nodes.
pub(super) struct Network {
    book: Arc<Book>,
    links: Arc<Links>,
}

impl Network {
    pub(super) fn new(book: Arc<Book>, links: Arc<Links>) -> Self {
        Self { book, links }
    }
}

impl RaftNetworkFactory<Types> for Network {
    type Network = Connection;

    async fn new_client(&mut self, target: u64, node: &BasicNode) -> Connection {
        Connection {
            target,
            address: node.addr.parse().ok(),
            book: Arc::clone(&self.book),
            links: Arc::clone(&self.links),
        }
    }
}

/// The connection to one node.
pub(super) struct Connection {
    target: u64,
    address: Option<SocketAddr>,
    book: Arc<Book>,
    links: Arc<Links>,
}

impl Connection {
    async fn send(&self, message: RaftMessage, limit: Duration) -> io::Result<RaftReply> {
        let address = self.book.address_of(self.target).or(self.address);
        let address = address.ok_or_else(|| io::Error::other("nobody knows where it is"))?;
        match self
            .links
            .ask(address, Message::Raft(self.target, Box::new(message)), limit)
            .await?
        {
            Reply::Raft(reply) => Ok(*reply),
            _ => Err(io::Error::other("another answer than was asked for")),
        }
    }
}

fn unreachable<E: std::error::Error>(error: &io::Error) -> RPCError<u64, BasicNode, E> {
    match error.kind() {
        io::ErrorKind::TimedOut => RPCError::Network(NetworkError::new(error)),
        _ => RPCError::Unreachable(Unreachable::new(error)),
    }
}

fn unexpected<E: std::error::Error>() -> RPCError<u64, BasicNode, E> {
    unreachable(&io::Error::other("another answer than was asked for"))
}

impl RaftNetwork<Types> for Connection {
    async fn append_entries(
        &mut self,
        rpc: AppendEntriesRequest<Types>,
        option: RPCOption,
    ) -> Result<AppendEntriesResponse<u64>, RPCError<u64, BasicNode, RaftError<u64>>> {
        match self.send(RaftMessage::Append(rpc), option.hard_ttl()).await {
            Ok(RaftReply::Append(answer)) => {
                answer.map_err(|error| RPCError::RemoteError(RemoteError::new(self.target, error)))
            }
            Ok(_) => Err(unexpected()),
            Err(error) => Err(unreachable(&error)),
        }
    }

    async fn install_snapshot(
        &mut self,
        rpc: InstallSnapshotRequest<Types>,
        option: RPCOption,
    ) -> Result<InstallSnapshotResponse<u64>, RPCError<u64, BasicNode, RaftError<u64, InstallSnapshotError>>>
    {
        match self.send(RaftMessage::Snapshot(rpc), option.hard_ttl()).await {
            Ok(RaftReply::Snapshot(answer)) => {
                answer.map_err(|error| RPCError::RemoteError(RemoteError::new(self.target, error)))
            }
            Ok(_) => Err(unexpected()),
            Err(error) => Err(unreachable(&error)),
        }
    }

    async fn vote(
        &mut self,
        rpc: VoteRequest<u64>,
        option: RPCOption,
    ) -> Result<VoteResponse<u64>, RPCError<u64, BasicNode, RaftError<u64>>> {
        match self.send(RaftMessage::Vote(rpc), option.hard_ttl()).await {
            Ok(RaftReply::Vote(answer)) => {
                answer.map_err(|error| RPCError::RemoteError(RemoteError::new(self.target, error)))
            }
            Ok(_) => Err(unexpected()),
            Err(error) => Err(unreachable(&error)),
        }
    }
}

impl Node {
    /// Takes a message of another node.
    pub(in crate::control::fleet) async fn take(&self, message: RaftMessage) -> RaftReply {
        match message {
            RaftMessage::Append(rpc) => {
                let answered = self.raft.append_entries(rpc).await;
                if matches!(&answered, Ok(answer) if !matches!(answer, AppendEntriesResponse::HigherVote(_)))
                {
                    self.election.hear_leader();
                }
                RaftReply::Append(answered)
            }
            RaftMessage::Vote(rpc) => {
                let answered = self.raft.vote(rpc).await;
                if matches!(&answered, Ok(answer) if answer.vote_granted) {
                    self.election.hold();
                }
                RaftReply::Vote(answered)
            }
            RaftMessage::Snapshot(rpc) => RaftReply::Snapshot(self.raft.install_snapshot(rpc).await),
        }
    }
}
