//! Composed by hand, with the shared library that containers use.
#![allow(missing_docs, reason = "a program of the bench")]

mod nodes;
mod program;

use pteros_dylib as _;

fn main() -> Result<(), pteros::component::ComponentError> {
    program::main()
}
