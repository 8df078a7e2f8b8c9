//! What publishers of this process kept for a subscription that joins late and
//! is reliable and KEEP_ALL, and for which its queue has no room: it waits here
//! and enters as samples are taken, as it would wait in a publisher of another
//! process. Whatever comes meanwhile comes after it: KEEP_ALL publishers wait,
//! what others publish is lost as it is to any full queue.
//!
//! No longer than what the matched publishers keep: it only grows when one
//! matches, by what is published at that very moment, and by ends of instances,
//! of which one of each kind may wait per publisher and instance. What a
//! publisher kept leaves with it, and counts as lost.

use std::collections::VecDeque;

use pteros_rtps::history::ChangeKind;
use pteros_rtps::id::Guid;
use pteros_rtps::reader::Reader;
use pteros_rtps::time::Instant;

use crate::intake::Intake;
use crate::reader::{Arrived, enter};
use crate::sample::Item;

/// What waits for room, oldest first.
#[derive(Default)]
pub(crate) struct Backlog(VecDeque<Item>);

impl Backlog {
    fn push(&mut self, item: Item) {
        if item.is_end() && self.has_end_like(&item) {
            return;
        }
        self.0.push_back(item);
    }

    /// Whether the same end of the same instance waits, and nothing of the
    /// instance after it.
    fn has_end_like(&self, end: &Item) -> bool {
        let about = |item: &Item| {
            let keyed = item.instance.as_deref()?;
            Some((item.meta.publisher, keyed.info.key, keyed.kind))
        };
        let Some(wanted) = about(end) else {
            return false;
        };
        let of_it = self.0.iter().rev().filter_map(about);
        let of_it = of_it.filter(|(writer, key, _)| (*writer, *key) == (wanted.0, wanted.1));
        let mut ends = of_it.take_while(|(_, _, kind)| *kind != ChangeKind::Alive);
        ends.any(|(_, _, kind)| kind == wanted.2)
    }
}

impl Intake {
    /// Lets a kept sample wait if it has no room or others wait; otherwise gives
    /// it back.
    pub(crate) fn put_off(&mut self, item: Item) -> Option<Item> {
        let key = item.instance.as_ref().map(|keyed| keyed.info.key);
        let has_room = item.is_end() || !self.lacks_room_for(key.as_ref());
        if self.backlog.is_none() && has_room {
            return Some(item);
        }
        self.backlog.get_or_insert_default().push(item);
        // Whoever makes room asks for it.
        self.hold_back();
        None
    }

    /// Lets what is published wait behind a backlog, if there is one and its
    /// publisher has waited for room or it is the end of an instance; otherwise
    /// gives it back.
    pub(crate) fn line_up(&mut self, item: Item, may_refuse: bool) -> Option<Item> {
        match &mut self.backlog {
            Some(backlog) if !may_refuse || item.is_end() => {
                backlog.push(item);
                None
            }
            _ => Some(item),
        }
    }

    /// Lets in what waits, as far as there is room.
    pub(crate) fn work_off(&mut self, now: Instant, machine: &mut Reader, arrived: &mut Arrived) {
        while let Some(item) = self.next_of_backlog() {
            if item.expires_at <= now {
                self.note_expired();
            } else if !self.is_repeated_item(&item) {
                arrived.note(enter(self, now, machine, item));
            }
        }
    }

    fn next_of_backlog(&mut self) -> Option<Item> {
        let first = self.backlog.as_ref()?.0.front();
        let Some(first) = first else {
            self.backlog = None;
            return None;
        };
        let key = first.instance.as_ref().map(|keyed| keyed.info.key);
        if !first.is_end() && self.lacks_room_for(key.as_ref()) {
            self.hold_back();
            return None;
        }
        self.backlog.as_mut()?.0.pop_front()
    }

    /// Forgets what a publisher kept; how many samples that were.
    pub(crate) fn forget_backlog_of(&mut self, writer: Guid) -> u64 {
        let Some(Backlog(items)) = self.backlog.as_deref_mut() else {
            return 0;
        };
        let samples = |items: &VecDeque<Item>| items.iter().filter(|item| !item.is_end()).count();
        let before = samples(items);
        items.retain(|item| item.meta.publisher != writer);
        let lost = before.saturating_sub(samples(items)) as u64;
        if items.is_empty() {
            self.backlog = None;
        }
        lost
    }
}
