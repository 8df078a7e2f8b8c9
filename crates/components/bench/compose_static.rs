//! Composed by hand, with Pteros linked into the program.
#![allow(missing_docs, reason = "a program of the bench")]

mod nodes;
mod program;

fn main() -> Result<(), pteros::component::ComponentError> {
    program::main()
}
