//! Seeded bugs: edits of the product's sources that verification switches on, one at a
//! time, to see whether it notices. The product itself has no trace of them.
//!
//! `table.txt` lists them ([`SeededBug`]). `cargo xtask` copies the workspace, applies all
//! edits to the copy, and builds the simulator and the crash tests there. An edit calls
//! this crate at run time, and does nothing until a test asks for its bug:
//! - a *mutant* is a bug that the simulator must detect;
//! - a *tolerated fault* may happen to correct code: a full buffer, an early wake-up;
//! - a *stop* is a step at which a test stops and kills a process;
//! - *work steps* count what the simulated processor must do.
//!
//! It links `std`, also into the copy of crates that are `no_std`.
#![forbid(unsafe_code)]

mod stop;
mod switch;
mod table;

pub use stop::{stop, stop_at};
pub use switch::{arm, armed, count_step, is_on, take_steps};
pub use table::{BugKind, Edit, SeededBug, parse, table};

/// Whether this build is the instrumented copy, whose product crates have the seeded bugs.
pub const INSERTED: bool = cfg!(feature = "inserted");

/// The file with the table, below the root of the repository.
pub const TABLE_FILE: &str = "verify/seeded_bugs/table.txt";
