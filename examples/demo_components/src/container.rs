//! Container program: loads components from shared libraries on request
//! (`pteros component container`).
#![forbid(unsafe_code)]

use pteros_dylib as _;

fn main() -> std::process::ExitCode {
    pteros_container::main()
}
