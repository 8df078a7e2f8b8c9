//! Datagrams of a secured context on their way out, protected, and in, believed
//! or not.

use std::cell::RefCell;
use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use pteros_rtps::id::GuidPrefix;
use pteros_rtps::outbox::Datagram;
use pteros_rtps::writer::FragmentSize;
use pteros_security::shield::{Sealed, Shield, Workspace};
use pteros_shm::{Name, Warrant};

use crate::core::Core;
use crate::room::Patience;

/// With headers and protection, codes for 50 participants included, it fits a
/// datagram of 65,507 bytes.
const SAME_HOST_BYTES_MAX: u16 = 63_000;
/// The least that the options can say.
const NETWORK_BYTES_MIN: u16 = 256;

thread_local! {
    /// Each thread protects datagrams in a buffer of its own, as it builds them.
    static SEALED: RefCell<Sealed> = RefCell::default();
}

/// Memory for datagrams that are being opened, reused for each.
pub(crate) struct Opening {
    workspace: Workspace,
    clean: Box<[u8]>,
}

impl Opening {
    /// For datagrams of at most so many bytes.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            workspace: Workspace::default(),
            clean: vec![0; bytes_max].into_boxed_slice(),
        }
    }

    /// What may be believed of a datagram.
    pub(crate) fn open(&mut self, shield: &Shield, datagram: &[u8]) -> Option<&[u8]> {
        let length = shield.open(datagram, &mut self.workspace, &mut self.clean);
        for (peer, refusal) in shield.take_refusals() {
            match refusal.is_suspicious() {
                true => tracing::warn!("of what participant {peer} sends is dropped: {refusal}"),
                false => tracing::debug!("of what participant {peer} sends is dropped: {refusal}"),
            }
        }
        self.clean.get(..length?)
    }
}

/// Lets those alone be linked with that the shield shares memory with.
#[derive(Debug)]
struct Vouching(Arc<Shield>);

impl Warrant for Vouching {
    fn code(&self, peer: &Name, statement: &[u8]) -> Option<[u8; 16]> {
        self.0.memory_code(GuidPrefix(*peer), statement)
    }
}

/// What a context with this shield asks of those it links with.
pub(crate) fn warrant(shield: &Arc<Shield>) -> Arc<dyn Warrant> {
    Arc::new(Vouching(shield.clone()))
}

impl Core {
    /// Why a secured context has no link to this peer, if it may have none.
    pub(crate) fn no_memory_for(&self, peer: GuidPrefix) -> Option<String> {
        let shield = self.shield.as_ref()?;
        let why = "it runs with another enclave, whose permissions may be others";
        (!shield.shares_memory(peer)).then(|| why.to_owned())
    }

    /// How large samples are cut: as the options say; protected, a fragment still
    /// fits the frame or the datagram that is had in mind.
    pub(crate) fn fragment_size(&self) -> FragmentSize {
        let size = FragmentSize {
            same_host: self.options.fragment_bytes_same_host,
            network: self.options.fragment_bytes_network,
        };
        let Some(shield) = &self.shield else {
            return size;
        };
        let growth = u16::try_from(shield.overhead_bytes()).unwrap_or(u16::MAX);
        FragmentSize {
            same_host: size.same_host.min(SAME_HOST_BYTES_MAX),
            network: size
                .network
                .saturating_sub(growth)
                .max(NETWORK_BYTES_MIN.min(size.network)),
        }
    }

    /// Protects a datagram once and sends it to all its destinations but links.
    pub(crate) fn send_sealed(
        &self,
        shield: &Shield,
        datagram: &Datagram<'_>,
        code_point: u8,
        patience: &Patience,
    ) {
        let locators = || datagram.to.iter().filter(|to| to.to_link().is_none());
        if locators().next().is_none() {
            return;
        }
        SEALED.with_borrow_mut(|sealed| {
            if let Err(unsealed) = shield.seal(&datagram.parts, sealed) {
                // Its keys have not come yet, or it is gone: nobody could read it.
                tracing::trace!(%unsealed, "not sent");
                self.counters.send_errors.fetch_add(1, Ordering::Relaxed);
                return;
            }
            for bytes in sealed.datagrams() {
                for locator in locators() {
                    self.send_to(&[IoSlice::new(bytes)], locator, code_point, patience);
                }
            }
        });
    }
}
