//! Key → number → member.
