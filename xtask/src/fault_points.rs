//! Fault points (`fault!` in the engine) are for fault injection by the simulator
//! only. This check proves that a built program contains none of their names.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::tidy::root;

/// Start of a fault point in the sources.
const CALL: &str = concat!("fault", "!(\"");

/// Searches `program` for the name of every fault point. Returns their number.
pub fn absent_from(program: &Path) -> Result<usize> {
    let mut names = BTreeSet::new();
    for name in ["rtps", "shm", "dcps", "runtime", "pteros", "container"] {
        collect(&root().join("crates").join(name).join("src"), &mut names)?;
    }
    ensure!(!names.is_empty(), "the sources name no fault point");
    let bytes = fs::read(program).with_context(|| format!("read {}", program.display()))?;
    for name in &names {
        let found = bytes
            .windows(name.len())
            .any(|part| part == name.as_bytes());
        ensure!(
            !found,
            "{} contains the fault point {name}",
            program.display()
        );
    }
    Ok(names.len())
}

fn collect(folder: &Path, names: &mut BTreeSet<String>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, names)?;
        } else if !path.ends_with("fault.rs") {
            let text = fs::read_to_string(&path)?;
            let uses = text.split(CALL).skip(1);
            names.extend(uses.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
        }
    }
    Ok(())
}
