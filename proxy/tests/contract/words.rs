//! What lanes count, and what a pool's state knows of its members by that.

use std::sync::Mutex;

use proxima::protocol::{
    Answerer, Mark, PoolChanges, PoolCount, PoolMembers, PoolQuestion, PoolRequest, PoolState, Protocols,
    ReachedCount, ServerAnswer,
};
use proxima_wire::message::Class;

use crate::{
    client::Client,
    conversation::over,
    lines::{Lines, number},
    proxy::PATIENT,
    server::{self, PASSWORD},
};

static KNOWN: Lines = Lines::counting(PASSWORD, |settings| {
    Box::new(Followed {
        count: settings.count.clone(),
        changes: settings.changes.clone(),
        reader: Mutex::new(None),
    })
});
static FOLLOWED: Protocols = Protocols::new(&[&KNOWN]);

const WRITER: usize = 0;
const READER: usize = 1;

/// The first member takes writes, and the second one is read when it has given a sign that it has all of
/// them.
struct Followed {
    count: PoolCount,
    changes: PoolChanges,
    reader: Mutex<Option<ReachedCount>>,
}

impl PoolState for Followed {
    fn may_hold(&self) -> bool {
        true
    }

    fn holds(&self, asked: &PoolRequest<'_>, _: &dyn PoolMembers) -> bool {
        let reader = self.reader.lock().unwrap();
        asked.class == Class::Read
            && reader
                .as_ref()
                .is_none_or(|reader| reader.get() < self.count.get())
    }

    fn barrier(&self, _: &PoolRequest<'_>, members: &dyn PoolMembers) -> Option<PoolQuestion> {
        let reader = members.at(READER)?.reached;
        *self.reader.lock().unwrap() = Some(reader.clone());
        Some(PoolQuestion {
            member: READER,
            command: number("MARK"),
            message: b"MARK m\n".to_vec(),
            token: reader.mark(self.count.get()).token(),
        })
    }

    fn answered(&self, token: u64, of: &Answerer<'_>, heard: ServerAnswer<'_>) {
        if matches!(heard, ServerAnswer::Reply(..)) {
            of.reached.raise(Mark::of(token));
        }
        self.changes.note();
    }

    fn member(&self, asked: &PoolRequest<'_>, _: &dyn PoolMembers) -> Option<usize> {
        Some(if asked.class == Class::Read {
            READER
        } else {
            WRITER
        })
    }
}

#[test]
fn a_reader_is_asked_for_a_sign_when_it_has_not_all_that_lanes_have_counted() {
    let servers = ["one", "two"].map(|name| move || server::start(name));
    over("p", &servers, PATIENT, &FOLLOWED, |proxy| {
        let pool = &proxy.members[WRITER].pool;
        let reached = &proxy.members[READER].reached;
        let mut clients: Vec<Client> = (0..3).map(|_| Client::new(proxy.address)).collect();
        for round in 1..4 {
            for client in &mut clients {
                assert_eq!(client.ask("PUT k v").unwrap(), "+");
            }
            assert_eq!(pool.count.get(), 3 * round);
            assert!(reached.get() < 3 * round);
            let signs = pool.changes.count();
            for client in &mut clients {
                assert!(client.ask("WHO k").unwrap().ends_with("of two"));
                assert_eq!(reached.get(), 3 * round);
            }
            assert_eq!(
                pool.changes.count(),
                signs + 1,
                "one sign was enough for all of them"
            );
        }
        let signs = pool.changes.count();
        reached.begin_anew();
        assert!(clients[0].ask("WHO k").unwrap().ends_with("of two"));
        assert_eq!((reached.get(), pool.changes.count()), (9, signs + 1));
    });
}
