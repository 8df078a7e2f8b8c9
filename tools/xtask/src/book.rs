//! `cargo xtask book`: renders `docs/` as a book of static HTML files with
//! mdBook. The renderer is a workspace of its own (`tools/book/`), so nothing else in
//! the tree builds mdBook. It needs no network once its crates are there.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::checkout::root;
use crate::progress;

/// Where the book goes, from the root.
const OUTPUT: &str = "target/book";
/// Where the renderer is built, from the root.
const BUILD: &str = "target/book-build";

/// Where the pages of Python modules go, from the root.
const PYTHON_PAGES: &str = "target/python-reference";

/// Runs the command; the text is what to tell the user.
pub fn run() -> Result<String> {
    let root = root();
    let python = python_pages();
    let mut renderer = Command::new(env!("CARGO"));
    renderer
        .args(["run", "--locked", "--manifest-path"])
        .arg(root.join("tools/book/Cargo.toml"))
        .args(["--", OUTPUT])
        .args(python.as_ref().ok())
        .env("CARGO_TARGET_DIR", root.join(BUILD));
    let status =
        progress::run_build(&mut renderer).context("start cargo for the book's renderer")?;
    if !status.success() {
        bail!("the book was not rendered: {status}");
    }
    let note = match python {
        Ok(_) => String::new(),
        Err(why) => format!("\nwithout the pages of the Python modules: {why:#}"),
    };
    Ok(format!(
        "{OUTPUT}/index.html is the book's first page{note}"
    ))
}

/// Writes the pages of the wheel's modules and returns their folder.
fn python_pages() -> Result<PathBuf> {
    let folder = root().join(PYTHON_PAGES);
    let status = Command::new("python3")
        .arg(root().join("crates/python/api_reference.py"))
        .arg(&folder)
        .status()
        .context("python3 does not start; install Python 3.9 or later")?;
    if !status.success() {
        bail!("crates/python/api_reference.py failed: {status}");
    }
    Ok(folder)
}
