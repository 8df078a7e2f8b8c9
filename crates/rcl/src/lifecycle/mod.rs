//! Lifecycle state machine of managed nodes (rcl_lifecycle): states, transitions and
//! what each transition leads to.

mod error;
mod state_machine;

pub use error::TransitionError;
pub use state_machine::*;
