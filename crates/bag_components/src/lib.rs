//! Recorder and player of bags as components, with the parameters of rosbag2's
//! components.
//!
//! A recorder in the container of a camera takes the images within the process.
#![deny(missing_docs)]

mod parameters;
mod player;
mod recorder;

// Links the shared library of Pteros, as the container does.
use pteros_dylib as _;

pub use player::Player;
pub use recorder::Recorder;

pteros::register_components!(Recorder, Player);
