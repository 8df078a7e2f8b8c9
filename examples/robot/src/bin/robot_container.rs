//! The container that loads this package's components. The same cargo command
//! builds both, so they have the same fingerprint.

use pteros_dylib as _;

fn main() -> std::process::ExitCode {
    pteros_container::main()
}
