//! Project tasks: `cargo xtask <task>`. One module per task.

mod generate;

use anyhow::{Result, bail};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let task = arguments.next().unwrap_or_default();
    let rest: Vec<String> = arguments.collect();
    match task.as_str() {
        "generate" => println!("{}", generate::run(&rest)?),
        _ => bail!("usage: cargo xtask generate [--check]"),
    }
    Ok(())
}
