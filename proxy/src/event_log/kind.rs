//! The kinds of changes of state. Each is the target of its lines in the log: whoever logs a line with such a
//! target has told the event log, too, and nothing else has to be called.

/// What the targets begin with.
const PREFIX: &str = "event/";

/// Declares kinds as the targets of log lines.
macro_rules! kinds {
    ($($(#[$meaning:meta])* $name:ident = $word:literal;)*) => {
        $($(#[$meaning])* pub const $name: &str = concat!("event/", $word);)*
        /// The words of all kinds.
        pub const ALL: &[&str] = &[$($word),*];
    };
}

kinds! {
    /// The process has started, or is about to end.
    PROCESS = "process";
    /// A configuration is in effect.
    CONFIGURATION = "configuration";
    /// A configuration was refused, and the one before stays.
    REFUSED = "refused";
    /// A member is not asked any more.
    EJECTED = "ejected";
    /// A member is asked again.
    RETURNED = "returned";
    /// Suspected members of a pool are asked all the same, or no longer.
    FAIL_OPEN = "fail_open";
    /// A copy has another state.
    COPY = "copy";
    /// Others use the servers of copies.
    FOREIGN = "foreign";
    /// A server of MySQL serves or does not, or the writer changes.
    ROLE = "role";
    /// A source of servers answers, or does not: DNS, an endpoint, the API server, the node agent.
    SOURCE = "source";
    /// The fleet has another view.
    VIEW = "view";
    /// The lease has ended, or there is one.
    LEASE = "lease";
    /// A peer of the fleet, or this one: it joins, is left out, is complained of.
    PEER = "peer";
    /// Clients are led away, or come again.
    DRAIN = "drain";
    /// An operator has ordered something for a pool, or taken it back.
    ORDER = "order";
    /// The near cache was told something.
    NEAR = "near";
    /// Descriptors run out.
    DESCRIPTORS = "descriptors";
    /// Clients were closed by a rule.
    CLIENTS = "clients";
    /// A disk does not take what has to be kept, or takes it late.
    DISK = "disk";
    /// Certificates were renewed, or cannot be.
    CERTIFICATES = "certificates";
    /// Load balancers are told that this proxy is well, or unwell.
    HEALTH = "health";
    /// A part of the proxy is in a state that cannot be.
    DEFECT = "defect";
}

/// The kind that this target stands for. `None`: lines with it are no changes of state.
pub(super) fn of(target: &str) -> Option<&str> {
    target.strip_prefix(PREFIX)
}

/// What a change of this kind is from and to, where the kind alone says so.
pub(super) fn states(kind: &str) -> Option<[&'static str; 2]> {
    match kind {
        "ejected" => Some(["up", "ejected"]),
        "returned" => Some(["ejected", "up"]),
        _ => None,
    }
}
