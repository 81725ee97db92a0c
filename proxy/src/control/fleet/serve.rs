//! Requests of other peers.

use std::{io, sync::Arc};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::{mpsc, oneshot},
};

use super::{
    Arrival, Fleet,
    lease_end::LeaseEnd,
    link::{Accept, Hello, Purpose, Stream, packet},
    message::{Gift, Message, Reply},
};
use crate::fleet::Cause;

/// Answers that wait to be sent to one peer. A peer that takes none is read no further.
const ANSWERS: usize = 256;

impl Accept for Fleet {
    fn accept(self: &Arc<Self>, hello: Hello, stream: Stream, early: Vec<u8>) {
        match hello.purpose {
            Purpose::Control => {
                tokio::spawn(Arc::clone(self).serve(stream, early));
            }
            purpose @ Purpose::Data { .. } => {
                let Ok(opened) = stream.take_over(early) else {
                    return;
                };
                let arrival = Arrival::Link {
                    name: hello.name,
                    identity: hello.identity,
                    purpose,
                    opened,
                };
                let _ = self.arrivals.send(arrival);
            }
        }
    }
}

impl Fleet {
    /// Serves the requests of one connection until it ends.
    async fn serve(self: Arc<Self>, stream: Stream, mut received: Vec<u8>) -> io::Result<()> {
        let (mut reader, mut writer) = tokio::io::split(stream);
        let (answers, mut outbox) = mpsc::channel::<Vec<u8>>(ANSWERS);
        tokio::spawn(async move {
            while let Some(bytes) = outbox.recv().await {
                if writer.write_all(&bytes).await.is_err() {
                    break;
                }
            }
        });
        loop {
            for (number, message) in packet::take_all::<(u64, Message)>(&mut received)? {
                let Ok(place) = answers.clone().reserve_owned().await else {
                    return Ok(());
                };
                let fleet = Arc::clone(&self);
                tokio::spawn(async move {
                    let reply = fleet.reply(message).await;
                    if let Ok(bytes) = packet::write(&(number, reply)) {
                        place.send(bytes);
                    }
                });
            }
            if reader.read_buf(&mut received).await? == 0 {
                return Ok(());
            }
        }
    }

    async fn reply(self: &Arc<Self>, message: Message) -> Reply {
        match message {
            Message::Probe => Reply::Probe(self.introduction()),
            Message::Raft(node, message) if node == self.node.id() => {
                Reply::Raft(Box::new(self.node.take(*message).await))
            }
            Message::Raft(..) => Reply::Refused("another node is meant".to_owned()),
            Message::Heartbeat(beat) => self.take_heartbeat(beat).await,
            Message::Join(candidate) => self.take_candidate(candidate),
            Message::Goodbye { name, stay } => match self.node.leads() {
                Some(_) if self.remove(&name, stay, Cause::Goodbye).await => Reply::Done,
                _ => Reply::NotLeader(self.leader_address()),
            },
            Message::Stop { stay, term } => {
                self.end_lease(LeaseEnd::TakenAway { stay, term });
                Reply::Done
            }
            Message::Roster(roster) => {
                let ours = self.who.facts().fleet;
                if ours.is_none_or(|ours| ours == roster.fleet) {
                    self.hear_roster(&roster);
                }
                Reply::Done
            }
            Message::Difference(difference) => {
                self.hear_difference(&difference);
                Reply::Done
            }
            Message::Missed { name, identity, view } => {
                let (reply, gift) = oneshot::channel();
                let asked = Arrival::Missed {
                    name,
                    identity,
                    view,
                    reply,
                };
                let _ = self.arrivals.send(asked);
                Reply::Missed(gift.await.unwrap_or(Gift {
                    missed: None,
                    clock: None,
                }))
            }
            Message::Remove { name } => self.remove_by_hand(&name).await,
        }
    }

    /// An operator removes a peer; it may join again after a pause.
    pub(super) async fn remove_by_hand(&self, name: &str) -> Reply {
        let stay = self.roster.borrow().view.named(name).map(|peer| peer.stay);
        let Some(stay) = stay else {
            return Reply::Refused(format!("no peer has the name {name}"));
        };
        match (self.node.leads(), self.leader_address()) {
            (Some(_), _) if self.remove(name, stay, Cause::Operator).await => Reply::Done,
            (None, Some(leader)) => {
                let message = Message::Remove {
                    name: name.to_owned(),
                };
                let limit = self.config.lease * 2;
                let asked = self.links.ask(leader, message, limit).await;
                asked.unwrap_or_else(|error| Reply::Refused(error.to_string()))
            }
            _ => Reply::Refused("the voters have no leader".to_owned()),
        }
    }
}
