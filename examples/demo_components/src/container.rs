//! Container program: loads components from shared libraries on request
//! (`pteros component container`). It has the command's built-in nodes as components.
#![forbid(unsafe_code)]

use pteros_dylib as _;

fn main() -> std::process::ExitCode {
    pteros_container::main_with(pteros_nodes::COMPONENTS)
}
