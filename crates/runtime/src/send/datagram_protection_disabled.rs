//! Datagram protection of a build without feature `security`: none.
//!
//! Same names as in `datagram_protection`. The crypto transform has no value here, so the
//! compiler removes the code that uses it.

use std::sync::Arc;

use pteros_rtps::id::GuidPrefix;
use pteros_rtps::outbox::Datagram;
use pteros_rtps::writer::FragmentSize;
use pteros_shm::PeerAuthenticator;

use super::SendPath;
use super::back_pressure::BlockingBudget;

/// The protection of datagrams. It has no value.
pub(crate) enum CryptoTransform {}

impl CryptoTransform {
    pub(crate) fn allows_shared_memory(&self) -> bool {
        match *self {}
    }
}

pub(crate) fn peer_authenticator(
    crypto_transform: &Arc<CryptoTransform>,
) -> Arc<dyn PeerAuthenticator> {
    match **crypto_transform {}
}

/// A buffer for decoding datagrams; empty.
pub(crate) struct DecodeBuffer;

impl DecodeBuffer {
    pub(crate) fn new(_bytes_max: usize) -> Self {
        Self
    }

    pub(crate) fn open(
        &mut self,
        crypto_transform: &CryptoTransform,
        _datagram: &[u8],
    ) -> Option<&[u8]> {
        match *crypto_transform {}
    }
}

impl SendPath {
    pub(crate) fn shared_memory_denied(&self, _peer: GuidPrefix) -> Option<String> {
        None
    }

    pub(crate) fn fragment_size(&self, size: FragmentSize) -> FragmentSize {
        size
    }

    pub(super) fn send_sealed(
        &self,
        crypto_transform: &CryptoTransform,
        _datagram: &Datagram<'_>,
        _code_point: u8,
        _budget: &BlockingBudget,
    ) {
        match *crypto_transform {}
    }
}
