//! One instance as a subscription knows it.

use std::collections::BTreeSet;

use bytes::Bytes;
use pteros_msg::key::KeyHash;
use pteros_rtps::id::Guid;
use pteros_rtps::qos::EndpointQos;
use pteros_rtps::time::Timestamp;

use super::{InstanceInfo, InstanceState, ViewState};
use crate::ownership::Owner;
use crate::separation::Separation;

/// A sample's place among those that wait: source stamp, writer and number
/// where the order is by source, then arrival.
pub(super) type Place = (Timestamp, Guid, i64, u64);

/// State, writers and waiting samples of one instance.
pub(super) struct Record {
    /// State and generations now.
    pub info: InstanceInfo,
    /// The serialized key; empty if it could not be had.
    pub key: Bytes,
    /// Those that write it.
    pub writers: BTreeSet<Guid>,
    /// Who of them is heard, where that is one alone.
    pub owner: Option<Owner>,
    /// Where its samples wait.
    pub queued: BTreeSet<Place>,
    /// Where the news of its last end waits.
    pub end: Option<Place>,
    /// The place of the last sample that left.
    pub left: Option<Place>,
    /// The place of the newest sample or end that came: older ones do not
    /// change the state.
    pub newest: Option<Place>,
    /// Its own time filter.
    pub separation: Option<Separation>,
}

impl Record {
    pub fn new(key: KeyHash, serialized: Bytes, qos: &EndpointQos) -> Self {
        Self {
            info: InstanceInfo {
                key,
                state: InstanceState::Alive,
                view: ViewState::New,
                disposed_generations: 0,
                no_writers_generations: 0,
            },
            key: serialized,
            writers: BTreeSet::new(),
            owner: None,
            queued: BTreeSet::new(),
            end: None,
            left: None,
            newest: None,
            separation: Separation::new(qos),
        }
    }

    /// A sample came: what had ended begins anew (DDS 1.4 §2.2.2.5.1.5–6).
    pub fn revive(&mut self) {
        let info = &mut self.info;
        match info.state {
            InstanceState::Alive => return,
            InstanceState::Disposed => info.disposed_generations += 1,
            InstanceState::NoWriters => info.no_writers_generations += 1,
        }
        info.state = InstanceState::Alive;
        info.view = ViewState::New;
    }

    /// Whether it has ended and nothing of it waits.
    pub fn is_over(&self) -> bool {
        self.info.state != InstanceState::Alive
            && self.queued.is_empty()
            && self.end.is_none()
            && self.separation.as_ref().is_none_or(Separation::is_empty)
    }
}
