//! Peer program of Pteros for `cargo xtask bench host`.
//!
//! It is the lab's worker as a small program, so that its memory is that of a node
//! and not that of the command.

use std::process::ExitCode;

fn main() -> ExitCode {
    pteros_lab::worker::main(std::env::args().skip(1))
}
