//! Held data: arrivals of writers with a KEEP_ALL reader that has no space.

use std::collections::{BTreeMap, VecDeque};

use pteros_rtps::id::{Guid, GuidPrefix};

use crate::inbox::Arrival;

/// Held data per writer. When full, new data is lost.
const HELD_MAX: usize = 4_096;
/// Bytes of held data of all writers.
pub const HELD_BYTES_MAX: usize = 256 << 20;

/// Held data by remote writer.
#[derive(Default)]
pub struct HeldData {
    pub(super) writers: BTreeMap<Guid, HeldWriter>,
    pub(super) bytes: usize,
}

/// A remote writer whose data is held.
#[derive(Default)]
pub struct HeldWriter {
    readers: usize,
    waiting: VecDeque<Arrival>,
    token: Option<(String, bool)>,
}

impl HeldWriter {
    /// Keeps the writer's latest token change, to be handled after its data.
    pub fn set_token(&mut self, key: String, is_alive: bool) {
        self.token = Some((key, is_alive));
    }

    /// Its data, and its token change.
    pub fn into_parts(self) -> (VecDeque<Arrival>, Option<Arrival>) {
        let token = self.token;
        let token = token.map(|(key, is_alive)| Arrival::Token { key, is_alive });
        (self.waiting, token)
    }
}

impl HeldData {
    /// The writer, if its data is held.
    pub fn writer_mut(&mut self, writer: Guid) -> Option<&mut HeldWriter> {
        self.writers.get_mut(&writer)
    }

    /// Counts the readers for which a writer's data is held. After the last one the
    /// writer is returned.
    pub fn hold(&mut self, writer: Guid, holds: bool) -> Option<HeldWriter> {
        if holds {
            self.writers.entry(writer).or_default().readers += 1;
            return None;
        }
        let held = self.writers.get_mut(&writer)?;
        held.readers = held.readers.saturating_sub(1);
        if held.readers > 0 {
            return None;
        }
        self.remove(writer)
    }

    fn remove(&mut self, writer: Guid) -> Option<HeldWriter> {
        let held = self.writers.remove(&writer)?;
        let bytes: usize = held.waiting.iter().map(Arrival::bytes).sum();
        self.bytes = self.bytes.saturating_sub(bytes);
        Some(held)
    }

    /// Removes the writers of a participant.
    pub fn remove_participant(&mut self, prefix: GuidPrefix) -> Vec<(Guid, HeldWriter)> {
        let is_its = |writer: &&Guid| writer.prefix == prefix;
        let writers: Vec<Guid> = self.writers.keys().filter(is_its).copied().collect();
        let removed = writers.into_iter();
        removed
            .filter_map(|writer| Some((writer, self.remove(writer)?)))
            .collect()
    }

    /// Keeps an arrival of a held writer, and loses it when full. Returns the arrival if
    /// the writer is not held.
    pub fn keep(&mut self, writer: Guid, arrival: Arrival) -> Option<Arrival> {
        let Some(held) = self.writers.get_mut(&writer) else {
            return Some(arrival);
        };
        let bytes = self.bytes.saturating_add(arrival.bytes());
        // The number of a lost sample is missing from later ones, which reports it.
        if held.waiting.len() < HELD_MAX && bytes <= HELD_BYTES_MAX {
            self.bytes = bytes;
            held.waiting.push_back(arrival);
        }
        None
    }
}
