//! Datagram protection: the crypto transform applied to outgoing and incoming
//! datagrams of a secured context (DDS Security 1.1 §8.5).

use std::cell::RefCell;
use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use pteros_rtps::id::GuidPrefix;
use pteros_rtps::outbox::Datagram;
use pteros_rtps::writer::FragmentSize;
pub(crate) use pteros_security::crypto_transform::CryptoTransform;
use pteros_security::crypto_transform::{OpenBuffers, SealedDatagrams};
use pteros_shm::{PeerAuthenticator, PeerName};

use super::SendPath;
use super::back_pressure::BlockingBudget;
use crate::thread_buffer::with_buffer;

/// With headers, protection and receiver-specific MACs for 50 participants, it fits
/// a datagram of 65,507 bytes.
const SAME_HOST_BYTES_MAX: u16 = 63_000;
/// The smallest value that the options allow.
const NETWORK_BYTES_MIN: u16 = 256;

thread_local! {
    /// Each thread protects datagrams in its own buffer.
    static SEALED: RefCell<SealedDatagrams> = RefCell::default();
}

/// A buffer for decoding datagrams, reused for each.
pub(crate) struct DecodeBuffer {
    workspace: OpenBuffers,
    clean: Box<[u8]>,
}

impl DecodeBuffer {
    /// For datagrams of at most so many bytes.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            workspace: OpenBuffers::default(),
            clean: vec![0; bytes_max].into_boxed_slice(),
        }
    }

    /// The authentic part of a datagram.
    pub(crate) fn open(
        &mut self,
        crypto_transform: &CryptoTransform,
        datagram: &[u8],
    ) -> Option<&[u8]> {
        let length = crypto_transform.open(datagram, &mut self.workspace, &mut self.clean);
        for (peer, refusal) in crypto_transform.take_drops() {
            if refusal.is_suspicious() {
                tracing::warn!("datagrams of participant {peer} are dropped: {refusal}")
            } else {
                tracing::debug!("datagrams of participant {peer} are dropped: {refusal}")
            }
        }
        self.clean.get(..length?)
    }
}

/// Allows shared-memory connections only with peers that the crypto transform
/// permits.
#[derive(Debug)]
struct SharedMemoryAuthenticator(Arc<CryptoTransform>);

impl PeerAuthenticator for SharedMemoryAuthenticator {
    fn mac(&self, peer: &PeerName, statement: &[u8]) -> Option<[u8; 16]> {
        self.0.shared_memory_mac(GuidPrefix(*peer), statement)
    }
}

/// The peer authenticator of a context with this crypto transform.
pub(crate) fn peer_authenticator(
    crypto_transform: &Arc<CryptoTransform>,
) -> Arc<dyn PeerAuthenticator> {
    Arc::new(SharedMemoryAuthenticator(crypto_transform.clone()))
}

impl SendPath {
    /// Why a secured context must not connect to this peer by shared memory, if so.
    pub(crate) fn shared_memory_denied(&self, peer: GuidPrefix) -> Option<String> {
        let crypto_transform = self.crypto_transform.as_ref()?;
        let why = "it runs with another enclave, whose permissions may differ";
        (!crypto_transform.uses_shared_memory(peer)).then(|| why.to_owned())
    }

    /// The wanted fragment sizes, reduced so that a protected fragment still fits
    /// the frame or datagram.
    pub(crate) fn fragment_size(&self, size: FragmentSize) -> FragmentSize {
        let Some(crypto_transform) = &self.crypto_transform else {
            return size;
        };
        let growth = u16::try_from(crypto_transform.overhead_bytes()).unwrap_or(u16::MAX);
        FragmentSize {
            same_host: size.same_host.min(SAME_HOST_BYTES_MAX),
            network: size
                .network
                .saturating_sub(growth)
                .max(NETWORK_BYTES_MIN.min(size.network)),
        }
    }

    /// Protects a datagram once and sends it to all its destinations except
    /// shared-memory connections.
    pub(super) fn send_sealed(
        &self,
        crypto_transform: &CryptoTransform,
        datagram: &Datagram<'_>,
        code_point: u8,
        budget: &BlockingBudget,
    ) {
        let locators = || datagram.to.iter().filter(|to| to.to_connection().is_none());
        if locators().next().is_none() {
            return;
        }
        with_buffer(&SEALED, SealedDatagrams::default, |sealed| {
            if let Err(unsealed) = crypto_transform.seal(&datagram.parts, sealed) {
                // Its keys have not arrived, or it was removed: no peer could decode it.
                tracing::trace!(%unsealed, "not sent");
                self.counters.errors.fetch_add(1, Ordering::Relaxed);
                return;
            }
            for bytes in sealed.datagrams() {
                for locator in locators() {
                    self.send_to(&[IoSlice::new(bytes)], locator, code_point, budget);
                }
            }
        });
    }
}
