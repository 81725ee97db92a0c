use super::store::Store;
use proxima_wire::message::{Outcome, Request};
#[derive(Clone, Copy)]
pub struct Context<'a> { pub now: u64, pub unix: u64, pub pid: u32, pub threads: usize, pub connections: &'a dyn Connections }
pub trait Connections {
    fn current(&self) -> u64;
    fn total(&self) -> u64;
    fn each(&self, show: &mut dyn FnMut(&Connection<'_>));
}
#[derive(Clone, Copy, Debug)]
pub struct Connection<'a> { pub id: u64, pub address: &'a str, pub listener: Option<&'a str>, pub state: &'a str, pub idle: u64 }
pub fn answer(_: &Store, _: &Context<'_>, _: &Request, _: &[u8], out: &mut Vec<u8>) -> Outcome { out.extend(b"END\r\n"); Outcome::NotFound }
