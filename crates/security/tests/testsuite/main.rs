//! The integration tests of DDS Security, in one program; each module is a topic.

mod access;
mod crowd;
mod crypto;
mod crypto_transform;
mod enclaves;
mod handshakes;
mod keystores;
mod peers;
mod smime;
mod support;
mod targets;
mod zenoh_files;
