//! Security as DDS Security 1.1 defines it and SROS 2 deploys it: certificates
//! ([`identity`]), access control ([`governance`], [`permissions`]), the files of
//! an enclave ([`enclave`], [`smime`], [`keystore`]), the authentication handshake
//! ([`auth`]), cryptography ([`crypto`]) and the crypto transform of messages
//! ([`crypto_transform`]). [`zenoh`] writes the same for Zenoh, as configuration files.
//!
//! No module opens a socket, reads a clock or starts a thread. Files are read on
//! request, and `now` is an argument. Cryptography is AWS-LC's, formats are parsed
//! with RustCrypto, decisions are made here. Data of files and peers never causes a
//! panic; it is rejected with a reason.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

pub mod attributes;
pub mod auth;
pub mod certificate;
pub mod crypto;
pub mod crypto_transform;
pub mod date;
pub mod diagnostic;
pub mod document;
pub mod enclave;
pub mod enclave_name;
pub mod enclave_watch;
pub mod expression;
pub mod governance;
pub mod identity;
pub mod issue;
pub mod key;
pub mod keystore;
mod pem;
pub mod permissions;
pub mod policy;
pub mod smime;
pub mod subject;
pub mod zenoh;
