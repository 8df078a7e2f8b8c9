//! A DDS subscriber with several readers: what a publisher wrote for them is
//! put together before any of them sees it, and an access shows all of it at
//! once (DDS 1.4 §2.2.2.5.2.8–10).
//!
//! Samples come to the group under their reader's `machine` lock and leave it
//! one at a time through the reader's intake, which judges them when they are
//! taken, as of the time at which they became ready. Lock order: a reader's
//! `machine`, a group, a reader's `intake`; the group's is never held with an
//! `intake`.
//!
//! Of publishers with several writers nothing is handed on before the first
//! access, so that readers made one after the other begin together.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use pteros_rtps::id::Guid;
use pteros_rtps::qos::{EndpointQos, Presentation};
use pteros_rtps::time::Instant;

use crate::coherent::{Batch, Losses, SetTotals, Sets};
use crate::core::Core;
use crate::reader::ReaderEndpoint;
use crate::ready::Slot;
use crate::sample::Item;

/// Readers that are presented as one whole.
pub struct SubscriptionGroup {
    presentation: Presentation,
    state: Mutex<GroupState>,
    /// Where user code waits for samples of any of them.
    pub slot: Slot,
}

struct GroupState {
    sets: Sets,
    /// By place; a free place is taken again.
    members: Vec<Option<Member>>,
    /// How often an access was begun and not ended.
    accesses: usize,
    /// There was an access.
    has_begun: bool,
}

#[derive(Clone)]
struct Member {
    guid: Guid,
    reader: Weak<ReaderEndpoint>,
    /// Its machine keeps samples for want of room here.
    held_back: bool,
}

/// A reader's place in a group.
pub(crate) struct Membership {
    pub group: Arc<SubscriptionGroup>,
    pub place: usize,
}

/// What a reader got of its group.
pub(crate) struct Taken {
    /// A sample, and when it became ready. None, when all that waited had
    /// expired: that makes room, too.
    pub next: Option<(Instant, Item)>,
    /// Some reader was full and no longer is.
    pub made_room: bool,
    /// What some machine kept has room, see [`SubscriptionGroup::take_resumed`],
    /// or the reader's deadlines are to be looked at.
    pub resume: bool,
}

/// What members are to be told once the lock is released.
#[derive(Default)]
struct News(Vec<(Arc<ReaderEndpoint>, Option<u64>, Losses)>);

impl SubscriptionGroup {
    fn new(presentation: Presentation) -> Self {
        let mut sets = Sets::new(presentation);
        sets.close();
        Self {
            presentation,
            state: Mutex::new(GroupState {
                sets,
                members: Vec::new(),
                accesses: 0,
                has_begun: false,
            }),
            slot: Slot::default(),
        }
    }

    /// How its readers are presented.
    pub fn presentation(&self) -> Presentation {
        self.presentation
    }

    /// Whether an access is open.
    pub fn is_open(&self) -> bool {
        self.state.lock().accesses > 0
    }

    /// Whether a sample of some reader can be taken now.
    pub fn has_samples(&self) -> bool {
        let state = self.state.lock();
        !state.has_begun || (0..state.members.len()).any(|place| state.sets.waiting.shows(place))
    }

    /// A place for a reader that is about to be made.
    pub(crate) fn join(
        self: &Arc<Self>,
        guid: Guid,
        qos: &EndpointQos,
        room: (usize, usize),
    ) -> Membership {
        let mut state = self.state.lock();
        let free = state.members.iter().position(Option::is_none);
        let place = free.unwrap_or(state.members.len());
        let member = Member {
            guid,
            reader: Weak::new(),
            held_back: false,
        };
        match state.members.get_mut(place) {
            Some(free) => *free = Some(member),
            None => state.members.push(Some(member)),
        }
        state.sets.put_reader(place, qos, room);
        drop(state);
        Membership {
            group: self.clone(),
            place,
        }
    }

    pub(crate) fn note_reader(&self, place: usize, reader: &Arc<ReaderEndpoint>) {
        if let Some(Some(member)) = self.state.lock().members.get_mut(place) {
            member.reader = Arc::downgrade(reader);
        }
    }

    /// A reader is gone: nobody waits for its part of anything.
    pub(crate) fn leave(&self, now: Instant, place: usize) {
        let mut state = self.state.lock();
        let ready = state.sets.remove_reader(now, place);
        if let Some(member) = state.members.get_mut(place) {
            *member = None;
        }
        let news = state.absorb(ready);
        drop(state);
        self.tell(news);
    }

    /// Looks at the sets or changes them, on behalf of a reader; `None` if it
    /// has left.
    pub(crate) fn with_sets<R>(
        &self,
        reader: (usize, Guid),
        look: impl FnOnce(&mut Sets) -> R,
    ) -> Option<R> {
        let mut state = self.state.lock();
        let is_member = state.guid(reader.0) == Some(reader.1);
        is_member.then(|| look(&mut state.sets))
    }

    /// Does something to the sets, and tells of what became ready or was
    /// dropped.
    pub(crate) fn change_sets(
        &self,
        (place, guid): (usize, Guid),
        change: impl FnOnce(&mut Sets) -> Vec<Batch>,
    ) {
        let mut state = self.state.lock();
        if state.guid(place) != Some(guid) {
            return;
        }
        let ready = change(&mut state.sets);
        let news = state.absorb(ready);
        let before_first = !state.has_begun;
        let wakened = match before_first {
            true => state.readers(),
            false => Vec::new(),
        };
        drop(state);
        self.tell(news);
        // The first look at any of them opens the group.
        for reader in wakened {
            reader.slot.ready();
        }
        if before_first {
            self.slot.ready();
        }
    }

    fn tell(&self, news: News) {
        let has_samples = news.0.iter().any(|(_, queued, _)| queued.is_some());
        for (reader, queued, losses) in news.0 {
            if let Some(samples) = queued {
                reader.note_ready(samples);
            }
            reader.note_losses(losses);
        }
        if has_samples {
            self.slot.ready();
        }
    }

    /// Whether writers must wait for a reader.
    pub(crate) fn is_full(&self, place: usize) -> bool {
        self.state.lock().sets.waiting.is_full(place, 0)
    }

    /// As [`Self::is_full`]; then its machine is served when there is room.
    pub(crate) fn holds_back_when_full(&self, place: usize) -> bool {
        let mut state = self.state.lock();
        let is_full = state.sets.waiting.is_full(place, 0);
        if is_full && let Some(Some(member)) = state.members.get_mut(place) {
            member.held_back = true;
        }
        is_full
    }

    /// Whether a reader could take something now.
    pub(crate) fn shows(&self, place: usize) -> bool {
        let state = self.state.lock();
        !state.has_begun || state.sets.waiting.shows(place)
    }

    pub(crate) fn totals(&self, place: usize) -> SetTotals {
        self.state.lock().sets.totals(place)
    }

    pub(crate) fn wakes_at(&self) -> Option<Instant> {
        self.state.lock().sets.wakes_at()
    }

    /// A reader's oldest item that can be taken.
    pub(crate) fn take_of(&self, place: usize, now: impl Fn() -> Instant) -> Taken {
        let mut state = self.state.lock();
        let (opened, news) = state.open_first(&now);
        let full = state.count_full();
        let next = state.sets.waiting.take_of(place, &now);
        // What expires is of several readers.
        let made_room = state.count_full() < full;
        let resume = opened || state.resumed().next().is_some();
        drop(state);
        self.tell(news);
        Taken {
            next,
            made_room,
            resume,
        }
    }

    /// Readers whose machines kept samples for want of room and that have some
    /// now. They are told of once.
    pub(crate) fn take_resumed(&self) -> Vec<Arc<ReaderEndpoint>> {
        self.state.lock().take_resumed()
    }

    /// Opens the group if this is the first look; then whose sample is next
    /// among the readers asked for.
    fn next_reader(
        &self,
        now: impl Fn() -> Instant,
        among: impl Fn(Guid) -> bool,
    ) -> Option<Arc<ReaderEndpoint>> {
        let mut state = self.state.lock();
        let (opened, news) = state.open_first(&now);
        let readers = state.readers();
        drop(state);
        self.tell(news);
        debug_assert!(!opened || self.state.lock().has_begun);
        // What the time filter let go waits behind no set.
        let released = readers
            .iter()
            .find(|r| among(r.data.guid) && !r.intake().is_empty());
        if released.is_some() {
            return released.cloned();
        }
        let state = self.state.lock();
        let is_asked_for = |place| state.guid(place).is_some_and(&among);
        let place = state.sets.waiting.next_reader(is_asked_for)?;
        state.members.get(place)?.as_ref()?.reader.upgrade()
    }
}

impl GroupState {
    fn guid(&self, place: usize) -> Option<Guid> {
        Some(self.members.get(place)?.as_ref()?.guid)
    }

    fn readers(&self) -> Vec<Arc<ReaderEndpoint>> {
        let members = self.members.iter().flatten();
        members.filter_map(|m| m.reader.upgrade()).collect()
    }

    /// How many readers are full.
    fn count_full(&self) -> usize {
        let places = 0..self.members.len();
        places
            .filter(|place| self.sets.waiting.is_full(*place, 0))
            .count()
    }

    /// Places of readers that were held back and have room.
    fn resumed(&self) -> impl Iterator<Item = usize> {
        let members = self.members.iter().enumerate();
        let held_back = members.filter(|(_, m)| m.as_ref().is_some_and(|m| m.held_back));
        let places = held_back.map(|(place, _)| place);
        places.filter(|place| self.sets.waiting.is_half_empty(*place))
    }

    fn take_resumed(&mut self) -> Vec<Arc<ReaderEndpoint>> {
        let places: Vec<usize> = self.resumed().collect();
        let mut readers = Vec::new();
        for place in places {
            if let Some(Some(member)) = self.members.get_mut(place) {
                member.held_back = false;
                readers.extend(member.reader.upgrade());
            }
        }
        readers
    }

    /// Puts what is ready on the shelves.
    fn absorb(&mut self, ready: Vec<Batch>) -> News {
        let mut queued = BTreeMap::<usize, u64>::new();
        for batch in ready {
            let mut counts = BTreeMap::<usize, u64>::new();
            for (reader, item) in &batch.items {
                *counts.entry(*reader).or_default() += u64::from(!item.is_end());
            }
            if self.sets.shelve(batch) {
                for (reader, count) in counts {
                    *queued.entry(reader).or_default() += count;
                }
            }
        }
        let mut news = News::default();
        for (place, member) in self.members.iter().enumerate() {
            let losses = self.sets.losses(place);
            let queued = queued.get(&place).copied();
            if queued.is_none() && losses == Losses::default() {
                continue;
            }
            let reader = member.as_ref().and_then(|m| m.reader.upgrade());
            news.0.extend(reader.map(|reader| (reader, queued, losses)));
        }
        news
    }

    /// The first look hands on what came before it; whether this was it.
    fn open_first(&mut self, now: impl Fn() -> Instant) -> (bool, News) {
        if std::mem::replace(&mut self.has_begun, true) {
            return (false, News::default());
        }
        let ready = self.sets.open(now());
        (true, self.absorb(ready))
    }
}

impl fmt::Debug for SubscriptionGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubscriptionGroup")
            .field("presentation", &self.presentation)
            .finish_non_exhaustive()
    }
}

impl Core {
    /// A subscriber whose readers are to be made in it.
    pub fn create_subscription_group(&self, presentation: Presentation) -> Arc<SubscriptionGroup> {
        Arc::new(SubscriptionGroup::new(presentation))
    }

    /// Begins an access: until its end the readers of the group show what is
    /// there now, and nothing that comes later. Within one that has been begun,
    /// only counts; each has an [`Core::end_access`].
    pub fn begin_access(&self, group: &SubscriptionGroup) {
        let now = || self.env.now();
        let mut state = group.state.lock();
        let (opened, news) = state.open_first(now);
        let full = state.count_full();
        if state.accesses == 0 {
            // What has expired goes.
            state.sets.waiting.begin_access(now);
        }
        state.accesses += 1;
        let made_room = state.count_full() < full;
        let mut readers = state.take_resumed();
        if opened {
            // Patience has begun, which somebody must look after.
            readers.extend(state.readers().into_iter().next());
        }
        drop(state);
        group.tell(news);
        for reader in readers {
            self.serve_reader(self.env.now(), &reader);
        }
        if made_room {
            self.note_progress();
        }
    }

    /// Ends what the last [`Core::begin_access`] began; nothing if there is none.
    pub fn end_access(&self, group: &SubscriptionGroup) {
        let mut state = group.state.lock();
        let last = state.accesses == 1;
        state.accesses = state.accesses.saturating_sub(1);
        if !last {
            return;
        }
        state.sets.waiting.end_access();
        let readers = state.readers();
        drop(state);
        let mut any = false;
        for reader in readers.iter().filter(|reader| reader.has_samples()) {
            reader.slot.ready();
            any = true;
        }
        if any {
            group.slot.ready();
        }
    }

    /// Takes the oldest sample of the readers that are asked for, with the
    /// reader it is for. Never blocks for IO.
    pub fn take_of_group(
        &self,
        group: &SubscriptionGroup,
        among: impl Fn(Guid) -> bool,
    ) -> Option<(Guid, Item)> {
        loop {
            let reader = group.next_reader(|| self.env.now(), &among)?;
            let popped = reader.pop_of_group(|| self.env.now());
            let item = popped.and_then(|popped| self.note_popped(&reader, popped));
            if let Some(item) = item {
                return Some((reader.data.guid, item));
            }
            // A judge kept it, or somebody else was faster.
        }
    }
}
