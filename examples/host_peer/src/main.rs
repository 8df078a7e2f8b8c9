//! What `cargo xtask bench host` measures of Pteros: the lab's worker as a small
//! program of its own, so that its memory is a node's and not the command's.

use std::process::ExitCode;

fn main() -> ExitCode {
    pteros_lab::worker::main(std::env::args().skip(1))
}
