//! The writer.
mod config;
pub use config::*;
