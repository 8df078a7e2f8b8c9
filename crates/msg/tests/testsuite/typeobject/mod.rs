//! TypeObjects: hashes equal to other vendors', round trips, and arbitrary bytes of
//! a peer.

mod hostile;
mod lookup;
mod vectors;
