//! `pteros-lab-worker`: the measured process of `pteros lab`. It is a separate
//! program, so that its memory and size are those of a node, without the verbs of
//! the command.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "reads its command line")]

use std::process::ExitCode;

fn main() -> ExitCode {
    pteros_lab::worker::main(std::env::args().skip(1))
}
