//! The memcached text protocol, classic and meta commands.
