//! Types as TypeObjects: hashes equal to other vendors', round trips, and
//! whatever bytes a peer sends.

mod hostile;
mod lookup;
mod vectors;
