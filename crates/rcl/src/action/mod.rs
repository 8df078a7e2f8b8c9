//! Goal table of an action server: the goal state machine of rcl_action, cancel rules
//! and the expiry of results.

mod goal_table;

pub use goal_table::*;
