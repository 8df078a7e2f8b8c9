//! Subscription groups: creation, access, and samples in group order.

use std::sync::Arc;

use pteros_rtps::id::Guid;
use pteros_rtps::qos::Presentation;

use crate::core::Core;
use crate::core::take_path::TakePath;
use crate::endpoints::subscription_group::SubscriptionGroup;
use crate::sample::QueuedSample;

impl SubscriptionGroup {
    /// Ends the last [`TakePath::begin_access`](crate::TakePath::begin_access); does nothing without one.
    pub fn end_access(&self) {
        let mut state = self.state.lock();
        let last = state.accesses == 1;
        state.accesses = state.accesses.saturating_sub(1);
        if !last {
            return;
        }
        state.sets.ready.end_access();
        let readers = state.readers();
        drop(state);
        let mut any = false;
        for reader in readers.iter().filter(|reader| reader.has_samples()) {
            reader.slot.mark_ready();
            any = true;
        }
        if any {
            self.slot.mark_ready();
        }
    }
}

impl TakePath {
    /// Starts an access: until its end the members show the present samples and no later
    /// ones.
    ///
    /// Nested accesses only count; each needs an [`SubscriptionGroup::end_access`].
    pub fn begin_access(&self, group: &SubscriptionGroup) {
        let now = || self.platform.now();
        let mut state = group.state.lock();
        let (opened, updates) = state.open_on_first_access(now);
        let full = state.count_full();
        if state.accesses == 0 {
            // Expired sets are removed.
            state.sets.ready.begin_access(now);
        }
        state.accesses += 1;
        let freed_space = state.count_full() < full;
        let mut readers = state.take_resumed();
        if opened {
            // A new wait has started, which some reader must time out.
            readers.extend(state.readers().into_iter().next());
        }
        drop(state);
        group.notify(updates);
        for reader in readers {
            self.serve_reader(self.platform.now(), &reader);
        }
        if freed_space {
            self.scheduler.wake_waiters();
        }
    }

    /// Takes the oldest sample of the given readers, with its reader. Never blocks
    /// on I/O.
    pub fn take_of_group(
        &self,
        group: &SubscriptionGroup,
        among: impl Fn(Guid) -> bool,
    ) -> Option<(Guid, QueuedSample)> {
        loop {
            let reader = group.next_reader(|| self.platform.now(), &among)?;
            let popped = reader.pop_of_group(|| self.platform.now());
            let item = popped.and_then(|popped| self.note_popped(&reader, popped));
            if let Some(item) = item {
                return Some((reader.data.guid, item));
            }
            // A filter rejected it, or another thread took it first.
        }
    }
}

impl Core {
    /// Creates a group, in which readers can then be created.
    pub fn create_subscription_group(&self, presentation: Presentation) -> Arc<SubscriptionGroup> {
        Arc::new(SubscriptionGroup::new(presentation))
    }
}
