//! `cargo xtask namespace [--no-multicast] -- COMMAND...`: runs a command in a
//! private network namespace, see `pteros_peers::network`.

pub use pteros_peers::network::{INSIDE_TASK, VARIABLE, available, command, run, run_inside};
