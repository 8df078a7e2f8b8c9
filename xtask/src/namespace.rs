//! `cargo xtask namespace [--no-multicast] -- COMMAND...`: a network of its own,
//! see `pteros_testbed::network`.

pub use pteros_testbed::network::{INSIDE_TASK, VARIABLE, available, command, run, run_inside};
