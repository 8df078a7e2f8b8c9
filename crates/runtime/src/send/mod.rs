//! The send path of a context: from the outbox of a protocol machine to sockets and
//! shared-memory connections.
//!
//! Publishing threads and the driver call it under no lock. It seals datagrams in a
//! secured context, joins fragments to segmented sends and waits for socket space within
//! a [`BlockingBudget`]. It never locks, never accesses an endpoint and never decides
//! what to send.

pub(crate) mod back_pressure;
#[cfg(feature = "security")]
pub(crate) mod datagram_protection;
#[cfg(not(feature = "security"))]
#[path = "datagram_protection_disabled.rs"]
pub(crate) mod datagram_protection;
pub(crate) mod deferred;
pub mod flow_controller;
pub(crate) mod flow_controllers;
mod segmented_send;

use std::cell::RefCell;
use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pteros_rtps::locator::Locator;
use pteros_rtps::outbox::{Datagram, Outbox};

use crate::platform::{DatagramSockets, Platform};
use crate::shm_transport::ShmTransport;
use crate::thread_buffer::with_buffer;
use back_pressure::BlockingBudget;
use datagram_protection::CryptoTransform;
use segmented_send::SegmentedSend;

thread_local! {
    /// Each thread builds datagrams in its own send buffer. Nothing is allocated
    /// per message, and writers share no lock.
    static OUTBOX: RefCell<Outbox> = RefCell::new(Outbox::new());
}

/// Totals of sent datagrams.
#[derive(Default)]
pub(crate) struct SendCounters {
    pub(crate) sent: AtomicU64,
    pub(crate) errors: AtomicU64,
    pub(crate) waits: AtomicU64,
}

/// See the module documentation. Thread-safe.
pub(crate) struct SendPath {
    platform: Arc<dyn Platform>,
    sockets: Arc<dyn DatagramSockets>,
    shm: Option<Arc<dyn ShmTransport>>,
    /// The crypto transform between protocol and sockets, in a secured context.
    crypto_transform: Option<Arc<CryptoTransform>>,
    pub(crate) counters: SendCounters,
    /// It is unknown whether the socket has space for a burst.
    socket_may_be_full: AtomicBool,
}

impl SendPath {
    pub(crate) fn new(
        platform: Arc<dyn Platform>,
        sockets: Arc<dyn DatagramSockets>,
        shm: Option<Arc<dyn ShmTransport>>,
        crypto_transform: Option<Arc<CryptoTransform>>,
    ) -> Self {
        Self {
            platform,
            sockets,
            shm,
            crypto_transform,
            counters: SendCounters::default(),
            socket_may_be_full: AtomicBool::new(false),
        }
    }

    /// Whether datagrams pass the crypto transform.
    pub(crate) fn is_secured(&self) -> bool {
        self.crypto_transform.is_some()
    }

    /// The crypto transform, in a secured context.
    /// The shared-memory transport, if there is one.
    pub(crate) fn shm(&self) -> Option<&dyn ShmTransport> {
        self.shm.as_deref()
    }

    pub(crate) fn crypto_transform(&self) -> Option<&CryptoTransform> {
        self.crypto_transform.as_deref()
    }

    /// Runs `fill` on this thread's outbox and sends the result, until `fill`
    /// returns false. `fill` must not publish. Datagrams for which the socket has no
    /// space are lost.
    pub(crate) fn transmit(&self, mut fill: impl FnMut(&mut Outbox) -> bool) {
        let mut more = true;
        while more {
            self.transmit_with_dscp(0, &BlockingBudget::non_blocking(), |outbox| {
                more = fill(outbox);
                false
            });
        }
    }

    /// As [`SendPath::transmit`], with a code point (DSCP) on every datagram unless
    /// it is 0.
    ///
    /// Stops when the socket has no more space; the writer keeps the remaining data.
    /// Returns false if a shared-memory connection refused a datagram.
    pub(crate) fn transmit_with_dscp(
        &self,
        code_point: u8,
        budget: &BlockingBudget,
        mut fill: impl FnMut(&mut Outbox) -> bool,
    ) -> bool {
        let mut taken = true;
        with_buffer(&OUTBOX, Outbox::new, |outbox| {
            loop {
                outbox.clear();
                let more = fill(outbox);
                taken &= self.send(outbox, code_point, budget);
                if !more || budget.is_exhausted() {
                    break;
                }
            }
            outbox.clear();
        });
        taken
    }

    /// Sends every datagram of `outbox`. A `code_point` other than 0 marks them
    /// (DSCP).
    ///
    /// Waits for space in the socket within `budget`. Takes no lock. Returns false
    /// if a shared-memory connection refused a datagram.
    pub(crate) fn send(&self, outbox: &Outbox, code_point: u8, budget: &BlockingBudget) -> bool {
        let mut taken = true;
        let may_join = self.crypto_transform.is_none() && code_point == 0;
        let mut datagrams = outbox.iter().peekable();
        while let Some(datagram) = datagrams.next() {
            if may_join && let Some(segments) = SegmentedSend::collect(&datagram, &mut datagrams) {
                self.send_segmented_batch(&segments, budget);
                continue;
            }
            let parts = datagram.parts.map(IoSlice::new);
            for locator in datagram.to {
                if let Some(connection) = locator.to_connection() {
                    taken &= self.send_by_shm(connection, &datagram);
                } else if self.crypto_transform.is_none() {
                    self.send_to(&parts, locator, code_point, budget);
                }
            }
            if let Some(crypto_transform) = &self.crypto_transform {
                self.send_sealed(crypto_transform, &datagram, code_point, budget);
            }
        }
        taken
    }

    /// Passes one datagram to the sockets.
    pub(crate) fn send_to(
        &self,
        parts: &[IoSlice<'_>],
        to: &Locator,
        code_point: u8,
        budget: &BlockingBudget,
    ) {
        let sent = self.send_within_budget(budget, || match code_point {
            0 => self.sockets.send(parts, to),
            _ => self.sockets.send_with_dscp(parts, to, code_point),
        });
        let counter = match sent {
            Ok(()) => &self.counters.sent,
            Err(error) => {
                tracing::trace!(%error, locator = %to, "send");
                &self.counters.errors
            }
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    fn send_by_shm(&self, connection: u32, datagram: &Datagram<'_>) -> bool {
        let sent = self.shm.as_ref().map(|shm| shm.send(connection, datagram));
        if let Some(Err(refused)) = sent {
            tracing::trace!(%refused, connection, "send");
        }
        sent == Some(Ok(()))
    }
}
