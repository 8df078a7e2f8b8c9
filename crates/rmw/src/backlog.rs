//! What waits for room in the queue of a reliable KEEP_ALL subscription, as it
//! would wait in a publisher of another process: what publishers of this process
//! kept, if it joined late, and the last samples of those that are KEEP_LAST. It
//! enters as samples are taken. Whatever comes meanwhile comes after it: KEEP_ALL
//! publishers wait, what best-effort ones publish is lost as to any full queue.
//!
//! No longer than what the matched publishers keep: what is newer than a
//! KEEP_LAST publisher's depth drives its oldest out, which counts as lost, and
//! of ends of instances one of each kind may wait per publisher and instance.
//! What a publisher kept leaves with it, and counts as lost.

use std::collections::VecDeque;

use pteros_rtps::history::ChangeKind;
use pteros_rtps::id::Guid;
use pteros_rtps::qos::{EndpointQos, History};
use pteros_rtps::reader::Reader;
use pteros_rtps::time::Instant;

use crate::instance::KeyHash;
use crate::intake::Intake;
use crate::reader::{Arrived, enter};
use crate::sample::Item;

/// What waits for room, oldest first.
#[derive(Default)]
pub(crate) struct Backlog(VecDeque<Item>);

/// What becomes of a sample of this process for which there is no room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WhenFull {
    /// None is needed: its publisher has waited for room. If others wait, it
    /// comes after them.
    Waited,
    /// It waits, as one of the last so many of its publisher and instance.
    Waits(usize),
    /// It is lost.
    Lost,
}

impl WhenFull {
    /// What a publisher's policies say, if losses are repaired.
    pub(crate) fn of(writer: &EndpointQos, reliable: bool) -> Self {
        match writer.history {
            _ if !reliable => Self::Lost,
            History::KeepAll => Self::Waited,
            History::KeepLast(depth) => {
                let of_each = writer.resource_limits.max_samples_per_instance;
                let depth = depth.min(of_each.unwrap_or(depth)).max(1);
                Self::Waits(usize::try_from(depth).unwrap_or(usize::MAX))
            }
        }
    }
}

impl Backlog {
    /// Lets the oldest of a publisher and instance go beyond so many; how many.
    fn trim(&mut self, writer: Guid, key: Option<KeyHash>, depth: usize) -> u64 {
        let is_of_it = |item: &Item| {
            let of = item.instance.as_ref().map(|keyed| keyed.info.key);
            item.meta.publisher == writer && of == key && !item.is_end()
        };
        let count = self.0.iter().filter(|item| is_of_it(item)).count();
        let surplus = count.saturating_sub(depth);
        let mut left = surplus;
        self.0.retain(|item| {
            let goes = left > 0 && is_of_it(item);
            left -= usize::from(goes);
            !goes
        });
        surplus as u64
    }

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

    /// Gives back what is published if it has room and nothing waits; otherwise
    /// how many samples are lost by it.
    pub(crate) fn line_up(&mut self, item: Item, when_full: WhenFull) -> Result<Item, u64> {
        let (writer, key) = (item.meta.publisher, item.instance.as_ref());
        let key = key.map(|keyed| keyed.info.key);
        let has_room = when_full == WhenFull::Waited || item.is_end();
        if self.backlog.is_none() && (has_room || !self.lacks_room_for(key.as_ref())) {
            return Ok(item);
        }
        if when_full == WhenFull::Lost && !item.is_end() {
            return Err(1);
        }
        let waiting = self.backlog.get_or_insert_default();
        waiting.push(item);
        let lost = match when_full {
            WhenFull::Waits(depth) => waiting.trim(writer, key, depth),
            WhenFull::Waited | WhenFull::Lost => 0,
        };
        // Whoever makes room asks for it.
        self.hold_back();
        Err(lost)
    }

    /// Lets in what waits, as far as there is room.
    pub(crate) fn work_off(&mut self, now: Instant, machine: &mut Reader, arrived: &mut Arrived) {
        while let Some(item) = self.next_of_backlog() {
            // What has expired was never received, as if it had waited elsewhere.
            if item.expires_at > now && !self.is_repeated_item(&item) {
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
