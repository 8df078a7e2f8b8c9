//! Benchmark of static composition with Pteros linked statically.
#![allow(missing_docs, reason = "a program of the benchmark")]

mod nodes;
mod program;

fn main() -> Result<(), pteros::component::ComponentError> {
    program::main()
}
