//! The integration tests of the components: one program, a module for each subject.

mod cli;
mod container;
mod cycles;
mod launch;
mod placement;
mod refusals;
mod static_transform;
mod support;
