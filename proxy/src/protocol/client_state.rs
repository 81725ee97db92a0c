//! What a protocol keeps for one client.

use std::any::Any;

/// State of a client of which only its codec knows what it means.
pub trait ClientState: Any + Send + Sync {
    /// Bytes of memory that the client fills, used or not, beside the state itself.
    fn memory(&self) -> usize;
}

/// The state of one client. It takes memory once the codec has something to keep.
pub struct KeptState(Option<Box<dyn ClientState>>);

impl KeptState {
    /// Nothing is kept.
    pub const NONE: Self = Self(None);

    /// The state; `None`: nothing is kept.
    pub fn get<S: ClientState>(&self) -> Option<&S> {
        let state: &dyn Any = self.0.as_deref()?;
        state.downcast_ref()
    }

    /// The state, to be changed; `None`: nothing is kept.
    pub fn get_mut<S: ClientState>(&mut self) -> Option<&mut S> {
        let state: &mut dyn Any = self.0.as_deref_mut()?;
        state.downcast_mut()
    }

    /// Changes the state, or a new one if nothing is kept.
    pub fn change<S: ClientState + Default>(&mut self, change: impl FnOnce(&mut S)) {
        match self.get_mut() {
            Some(state) => change(state),
            None => {
                let mut state = Box::<S>::default();
                change(&mut state);
                self.0 = Some(state);
            }
        }
    }

    /// Bytes of memory that the client fills, used or not.
    pub fn memory(&self) -> usize {
        self.0
            .as_ref()
            .map_or(0, |state| size_of_val(&**state) + state.memory())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Name(Vec<u8>);

    impl ClientState for Name {
        fn memory(&self) -> usize {
            self.0.capacity()
        }
    }

    #[test]
    fn a_state_takes_memory_from_its_first_change_on() {
        let mut kept = KeptState::NONE;
        assert!(kept.get::<Name>().is_none() && kept.get_mut::<Name>().is_none());
        assert_eq!(kept.memory(), 0);
        kept.change(|name: &mut Name| name.0 = b"app".to_vec());
        kept.change(|name: &mut Name| name.0.extend_from_slice(b"-1"));
        assert_eq!(kept.get::<Name>().map(|name| &name.0[..]), Some(&b"app-1"[..]));
        assert!(kept.memory() >= size_of::<Name>() + 5);
    }
}
