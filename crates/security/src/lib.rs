//! Security for robots as DDS Security 1.1 defines it and SROS 2 deploys it:
//! who somebody is ([`identity`]), what they may do ([`governance`],
//! [`permissions`]), the files that say so ([`enclave`], [`smime`], [`keystore`]),
//! how participants prove it to each other ([`auth`]), what protects their
//! messages ([`crypto`]) and who of them gets which message ([`shield`]).
//!
//! Nothing here opens a socket, reads a clock or starts a thread: files are
//! read when asked, `now` is an argument. Cryptography is AWS-LC's, formats are
//! read with RustCrypto's parsers, decisions are made here. What comes from
//! files and peers never panics; it is refused with the reason.

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
pub mod date;
pub mod document;
pub mod enclave;
pub mod expression;
pub mod fault;
pub mod governance;
pub mod identity;
pub mod issue;
pub mod key;
pub mod keystore;
mod pem;
pub mod permissions;
pub mod policy;
pub mod settings;
pub mod shield;
pub mod smime;
pub mod subject;
pub mod watch;
