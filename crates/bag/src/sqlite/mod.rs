//! A read-only reader of SQLite 3 databases: pages, table b-trees and records, as the
//! "Database File Format" of SQLite documents them.
//!
//! It reads the tables of a bag and nothing else: no index, no query, no write. A bag
//! needs no more, and a C library in every build would cost more than these files.
//! Every page number, length and depth is checked against the file, so a damaged
//! database is an error text and no loop.

mod database;
mod record;
mod wal;

pub(crate) use database::{Database, Table};
pub(crate) use record::Value;

/// The first bytes of every database.
pub(crate) const MAGIC: &[u8] = b"SQLite format 3\0";
