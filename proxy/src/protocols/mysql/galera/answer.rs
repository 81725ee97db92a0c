//! A server's status, as it reports it.

use super::{super::pairs::each_pair, reason::Reason};
use crate::protocol::{OtherProxies, Progress};

/// The answer to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Its status.
    Status(Status),
    /// The answer to whether it has waited for the others.
    Proof(bool),
    /// It has given up waiting for the others.
    Late,
    /// The server tells whether another proxy uses it.
    Others(OtherProxies),
    /// The server has not answered, for this reason.
    Failed(String),
}

/// The status of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Status {
    /// Its name in the cluster.
    pub(super) name: String,
    /// The id of the cluster's data, which no other cluster has. Empty: it does not tell.
    pub(super) cluster: String,
    /// The version of its program.
    pub(super) version: String,
    /// It takes no writes but those of the cluster.
    pub(super) is_read_only: bool,
    /// It brings another server up to date.
    pub(super) is_donor: bool,
    /// How far it is; `None`: it does not tell.
    pub(super) progress: Option<Progress>,
    /// The reasons why it serves nobody; empty if it serves.
    pub(super) why_not: Vec<Reason>,
}

impl Answer {
    /// Reads the names and values in a reply.
    pub(super) fn read(reply: &[u8]) -> Self {
        let mut status = Status::default();
        let (mut is_ready, mut is_primary, mut state) = (false, false, String::new());
        let mut why_not = Vec::new();
        let (mut position, mut unapplied) = (None, None);
        each_pair(reply, |name, value| {
            let text = String::from_utf8_lossy(value).into_owned();
            match name {
                b"wsrep_ready" => is_ready = text == "ON",
                b"wsrep_cluster_status" => is_primary = text == "Primary",
                b"wsrep_local_state" => state = text,
                b"wsrep_node_name" => status.name = text,
                // It is zero before the server has belonged to any.
                b"wsrep_cluster_state_uuid" if value.iter().any(|byte| !b"0-".contains(byte)) => {
                    status.cluster = text;
                }
                b"wsrep_last_committed" => {
                    // Before it has any it says -1, which some print without its sign.
                    position = text.parse().ok().filter(|&position| position < u64::MAX);
                }
                b"wsrep_local_recv_queue" => unapplied = text.parse().ok(),
                b"version" => status.version = text,
                b"read_only" => status.is_read_only = text != "OFF",
                b"wsrep_reject_queries" if text != "NONE" => why_not.push(Reason::RejectsQueries),
                b"wsrep_desync" if text == "ON" => status.is_donor = true,
                b"pxc_maint_mode" if text != "DISABLED" => why_not.push(Reason::Maintenance),
                _ => {}
            }
        });
        match &*state {
            "4" => {}
            // Behind it a donor takes what was written meanwhile, in state 3. So does a server that joins, which
            // is not ready.
            "2" | "3" => status.is_donor = true,
            "" => why_not.push(Reason::NoGalera),
            _ => why_not.push(Reason::NotSynced),
        }
        if !is_primary {
            why_not.push(Reason::NotPrimary);
        }
        if !is_ready {
            why_not.push(Reason::NotReady);
        }
        status.why_not = why_not;
        let progress = |(position, unapplied)| Progress { position, unapplied };
        status.progress = position.zip(unapplied).map(progress);
        Self::Status(status)
    }
}

#[cfg(test)]
mod tests {
    use proxima_wire::mysql::append_packet;

    use super::{Answer, Reason, Status};

    fn reply(pairs: &[(&str, &str)]) -> Vec<u8> {
        let mut out = Vec::new();
        append_packet(1, &mut out, |out| out.push(2));
        append_packet(2, &mut out, |out| out.extend_from_slice(b"\x03def\x04test\x01x"));
        for (number, (name, value)) in pairs.iter().enumerate() {
            append_packet(3 + number as u8, &mut out, |out| {
                for text in [name, value] {
                    out.push(text.len() as u8);
                    out.extend_from_slice(text.as_bytes());
                }
            });
        }
        append_packet(99, &mut out, |out| out.extend_from_slice(b"\xfe\0\0\x02\0\0\0"));
        out
    }

    #[test]
    fn a_server_that_does_not_tell_both_numbers_has_no_known_position() {
        let told = [("wsrep_last_committed", "20481"), ("wsrep_local_recv_queue", "7")];
        let progress = |pairs: &[(&str, &str)]| match Answer::read(&reply(pairs)) {
            Answer::Status(status) => status.progress.map(|all| (all.position, all.unapplied)),
            other => panic!("{other:?}"),
        };
        assert_eq!(progress(&told), Some((20481, 7)));
        assert_eq!(progress(&told[..1]), None);
        // It has belonged to no cluster yet.
        for none in ["-1", "18446744073709551615"] {
            assert_eq!(progress(&[("wsrep_last_committed", none), told[1]]), None);
        }
    }

    const WELL: [(&str, &str); 7] = [
        ("wsrep_ready", "ON"),
        ("wsrep_cluster_status", "Primary"),
        ("wsrep_local_state", "4"),
        ("wsrep_node_name", "pxc-1"),
        ("read_only", "OFF"),
        ("wsrep_reject_queries", "NONE"),
        ("pxc_maint_mode", "DISABLED"),
    ];

    fn with(name: &str, value: &'static str) -> Status {
        let changed = WELL.map(|(one, other)| (one, if one == name { value } else { other }));
        match Answer::read(&reply(&changed)) {
            Answer::Status(status) => status,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_server_serves_only_if_it_says_that_all_is_well() {
        let well = with("", "");
        assert_eq!(
            (&*well.name, &*well.why_not, well.is_read_only),
            ("pxc-1", &[][..], false)
        );
        assert!(with("read_only", "ON").is_read_only);
        for state in ["2", "3"] {
            let donor = with("wsrep_local_state", state);
            assert!(donor.is_donor && donor.why_not.is_empty());
        }
        for (name, value, reason) in [
            ("wsrep_ready", "OFF", Reason::NotReady),
            ("wsrep_cluster_status", "non-Primary", Reason::NotPrimary),
            ("wsrep_local_state", "1", Reason::NotSynced),
            ("wsrep_local_state", "", Reason::NoGalera),
            ("wsrep_reject_queries", "ALL", Reason::RejectsQueries),
            ("pxc_maint_mode", "MAINTENANCE", Reason::Maintenance),
        ] {
            assert_eq!(with(name, value).why_not, [reason], "{name} {value}");
        }
    }
}
