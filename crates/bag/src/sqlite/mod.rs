//! Read-only reader of SQLite 3 databases: pages, table b-trees and records, according to
//! SQLite's "Database File Format".
//!
//! It reads the tables of a bag only: no indexes, queries or writes. A bag needs no more,
//! and a C library in every build would cost more than these files. Every page number,
//! length and depth is checked against the file. So a damaged database is an error text
//! and no endless loop.

mod database;
mod record;
mod wal;

pub(crate) use database::{Database, Table};
pub(crate) use record::Value;

/// First bytes of a database.
pub(crate) const MAGIC: &[u8] = b"SQLite format 3\0";
