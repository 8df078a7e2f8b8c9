//! Benchmark of static composition with the shared library of Pteros that
//! containers use.
#![allow(missing_docs, reason = "a program of the benchmark")]

mod nodes;
mod program;

use pteros_dylib as _;

fn main() -> Result<(), pteros::component::ComponentError> {
    program::main()
}
