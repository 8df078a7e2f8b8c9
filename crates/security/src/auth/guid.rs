//! Adjusted participant GUID: half of the GUID prefix is derived from the subject of
//! the participant's certificate (DDS Security 1.1 §9.3.3). So no participant can take
//! the prefix of a participant with another certificate.

use aws_lc_rs::digest::{SHA256, digest};
use pteros_rtps::id::GuidPrefix;

use crate::certificate::Certificate;

/// The adjusted prefix for the owner of `certificate`, from the prefix `candidate`.
///
/// ```text
///  bit 0   bits 1 to 47                     bits 48 to 95
/// +-------+--------------------------------+--------------------------------+
/// |   1   | first of SHA-256 of the subject| first of SHA-256 of candidate  |
/// +-------+--------------------------------+--------------------------------+
/// ```
pub fn adjusted_prefix(certificate: &Certificate, candidate: GuidPrefix) -> GuidPrefix {
    let mut prefix = [0; 12];
    let of_candidate = digest(&SHA256, &candidate.0);
    let (subject, rest) = prefix.split_at_mut(6);
    subject.copy_from_slice(&of_subject(certificate));
    rest.iter_mut()
        .zip(of_candidate.as_ref())
        .for_each(|(own, hashed)| *own = *hashed);
    GuidPrefix(prefix)
}

/// Whether the owner of `certificate` may have this prefix.
pub fn is_prefix_of(certificate: &Certificate, prefix: GuidPrefix) -> bool {
    prefix.0.starts_with(&of_subject(certificate))
}

/// A one bit, and 47 bits of the subject's hash.
fn of_subject(certificate: &Certificate) -> [u8; 6] {
    let hash = certificate.subject_hash();
    let mut bytes = [0; 6];
    let mut before = 1_u8;
    for (own, hashed) in bytes.iter_mut().zip(hash) {
        *own = (before << 7) | (hashed >> 1);
        before = hashed & 1;
    }
    bytes
}
