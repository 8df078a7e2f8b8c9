//! Test bed: what an experiment needs of a real machine. Implementations under test
//! and their programs, processes and their statistics from /proc, two hosts with an
//! emulated link. Private networks, the relay of frames and peer builds are
//! [`pteros_peers`].

pub mod hosts;
pub mod implementation;
pub mod process;
pub mod procfs;
pub mod programs;
pub mod ros2;
pub mod wheel;

pub use hosts::{EmulatedLink, TwoHosts};
pub use implementation::Implementation;
pub use process::{MeasurementFailure, PeerProcess};
pub use pteros_peers::{PeerBuild, frame_relay, network};
