//! `pteros-lab-worker`: what `pteros lab` measures of Pteros, a program of its own, so
//! that its memory and its size are those of a node and not those of a command with all its verbs.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    reason = "a program reads its command line"
)]

use std::process::ExitCode;

fn main() -> ExitCode {
    pteros_lab::worker::main(std::env::args().skip(1))
}
