//! A protocol's state for one client, or for one lane to a server.

use std::any::Any;

/// State of one end of a connection, a client's or a lane's, whose meaning only its codec knows.
pub trait EndState: Any + Send + Sync {
    /// Bytes of memory that the other side fills, used or not, beside the state itself.
    fn memory(&self) -> usize;
}

/// A slot for the state of one end. It takes memory once the codec has something to keep.
#[derive(Default)]
pub struct StateSlot(Option<Box<dyn EndState>>);

impl StateSlot {
    /// An empty slot.
    pub const NONE: Self = Self(None);

    /// The state; `None` if the slot is empty.
    pub fn get<S: EndState>(&self) -> Option<&S> {
        let state: &dyn Any = self.0.as_deref()?;
        state.downcast_ref()
    }

    /// The state, to be changed; `None` if the slot is empty.
    pub fn get_mut<S: EndState>(&mut self) -> Option<&mut S> {
        let state: &mut dyn Any = self.0.as_deref_mut()?;
        state.downcast_mut()
    }

    /// Changes the state, or a new one if the slot is empty.
    pub fn change<S: EndState + Default>(&mut self, change: impl FnOnce(&mut S)) {
        match self.get_mut() {
            Some(state) => change(state),
            None => {
                let mut state = Box::<S>::default();
                change(&mut state);
                self.0 = Some(state);
            }
        }
    }

    /// Drops the state: nothing is kept from now on.
    pub fn clear(&mut self) {
        self.0 = None;
    }

    /// Bytes of memory that the other side fills, used or not.
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

    impl EndState for Name {
        fn memory(&self) -> usize {
            self.0.capacity()
        }
    }

    #[test]
    fn a_state_takes_memory_from_its_first_change_on() {
        let mut slot = StateSlot::NONE;
        assert!(slot.get::<Name>().is_none() && slot.get_mut::<Name>().is_none());
        assert_eq!(slot.memory(), 0);
        slot.change(|name: &mut Name| name.0 = b"app".to_vec());
        slot.change(|name: &mut Name| name.0.extend_from_slice(b"-1"));
        assert_eq!(slot.get::<Name>().map(|name| &name.0[..]), Some(&b"app-1"[..]));
        assert!(slot.memory() >= size_of::<Name>() + 5);
        slot.clear();
        assert!(slot.get::<Name>().is_none() && slot.memory() == 0);
    }
}
