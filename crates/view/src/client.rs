//! A connected viewer, as the rest of the server sees it.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::outbox::{Outbox, Skipped};
use crate::wanted_parameters::WantedParameters;

/// A viewer. Its connection's thread sends what is in the outbox.
pub struct Client {
    pub id: u64,
    pub outbox: Outbox,
    /// It sent `pteros.hello`.
    pub wants_statistics: AtomicBool,
    /// It sent `subscribeConnectionGraph`.
    pub wants_graph: AtomicBool,
    /// The parameters of its `subscribeParameterUpdates`.
    pub wanted_parameters: Mutex<WantedParameters>,
    /// Skipped messages by channel, as they were last reported.
    reported: Mutex<BTreeMap<u32, u64>>,
}

impl Client {
    /// A viewer that has asked for nothing yet.
    ///
    /// # Errors
    /// The system has no descriptors left.
    pub fn new(id: u64) -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            id,
            outbox: Outbox::new()?,
            wants_statistics: AtomicBool::new(false),
            wants_graph: AtomicBool::new(false),
            wanted_parameters: Mutex::default(),
            reported: Mutex::default(),
        }))
    }

    /// The channel that has skipped the most messages since its last report, and how many.
    /// One is reported at a time, so that a slow viewer does not get more and more texts.
    pub fn next_report(&self) -> Option<Skipped> {
        let mut reported = self.reported.lock();
        let skipped = self
            .outbox
            .skipped()
            .into_iter()
            .map(|Skipped { channel, count }| {
                let before = reported.get(&channel).copied().unwrap_or_default();
                // A channel that was subscribed to anew begins at zero.
                let count = count.checked_sub(before).unwrap_or(count);
                Skipped { channel, count }
            });
        let most = skipped
            .max_by_key(|skipped| skipped.count)
            .filter(|most| most.count > 0)?;
        let all = self.outbox.skipped();
        let now = all.iter().find(|skipped| skipped.channel == most.channel)?;
        reported.insert(most.channel, now.count);
        Some(most)
    }

    /// Whether a wish was expressed.
    pub fn wants(wish: &AtomicBool) -> bool {
        wish.load(Ordering::Relaxed)
    }
}
