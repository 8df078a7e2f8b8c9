//! `cargo xtask book`: renders `docs/` as a book of static HTML files with
//! mdBook. The renderer is a workspace of its own (`tools/book/`), so nothing else in
//! the tree builds mdBook. It needs no network once its crates are there.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::checkout::root;

/// Where the book goes, from the root.
const OUTPUT: &str = "target/book";
/// Where the renderer is built, from the root.
const BUILD: &str = "target/book-build";

/// Runs the command; the text is what to tell the user.
pub fn run(arguments: &[String]) -> Result<String> {
    if !arguments.is_empty() {
        bail!("usage: cargo xtask book");
    }
    let root = root();
    let status = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--locked", "--manifest-path"])
        .arg(root.join("tools/book/Cargo.toml"))
        .args(["--", OUTPUT])
        .env("CARGO_TARGET_DIR", root.join(BUILD))
        .status()
        .context("start cargo for the book's renderer")?;
    if !status.success() {
        bail!("the book was not rendered: {status}");
    }
    Ok(format!("{OUTPUT}/index.html is the book's first page"))
}
