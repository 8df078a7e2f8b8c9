//! The matched readers of a writer, found by GUID in O(log n): each ACKNACK looks its
//! reader up, and a writer may have thousands.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::{Deref, DerefMut};

use super::proxy::ReaderProxy;
use crate::id::Guid;

/// A list of readers without duplicates. Positions are valid until a reader is removed.
#[derive(Debug, Default)]
pub(super) struct ReaderProxies {
    list: Vec<ReaderProxy>,
    positions: BTreeMap<Guid, usize>,
}

impl ReaderProxies {
    /// Adds a reader that is not in the list. Allocates.
    pub fn push(&mut self, reader: ReaderProxy) {
        self.positions.insert(reader.guid, self.list.len());
        self.list.push(reader);
    }

    /// Removes a reader. The last one of the list takes its position.
    pub fn remove(&mut self, guid: Guid) {
        let Some(at) = self.positions.remove(&guid) else {
            return;
        };
        if at < self.list.len() {
            self.list.swap_remove(at);
        }
        if let Some(moved) = self.list.get(at) {
            self.positions.insert(moved.guid, at);
        }
    }

    /// The reader with this GUID.
    pub fn find(&self, guid: Guid) -> Option<&ReaderProxy> {
        self.list.get(*self.positions.get(&guid)?)
    }

    /// The reader with this GUID, to change it.
    pub fn find_mut(&mut self, guid: Guid) -> Option<&mut ReaderProxy> {
        self.list.get_mut(*self.positions.get(&guid)?)
    }
}

impl Deref for ReaderProxies {
    type Target = [ReaderProxy];

    fn deref(&self) -> &[ReaderProxy] {
        &self.list
    }
}

impl DerefMut for ReaderProxies {
    fn deref_mut(&mut self) -> &mut [ReaderProxy] {
        &mut self.list
    }
}
