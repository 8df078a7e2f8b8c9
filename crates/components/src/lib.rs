//! Components to compose with. Each runs alone, composed by hand in a `main`, or
//! loaded by a container from this crate's shared library.
#![deny(missing_docs)]

mod listener;
mod talker;

// Shares Pteros with the container instead of bringing a copy along.
use pteros_dylib as _;

pub use listener::Listener;
pub use talker::Talker;

pteros::register_components!(Talker, Listener);
