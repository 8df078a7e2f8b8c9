//! The container that loads this package's components: it is built by the same
//! cargo command as their library.

use pteros_dylib as _;

fn main() -> std::process::ExitCode {
    pteros_component::main()
}
