//! Fault points (`fault!` in the engine) are for fault injection by the simulator
//! only. This check proves that a built program contains none of their names.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use crate::checkout::root;

/// Start of a fault point in the sources.
const CALL: &str = concat!("fault", "!(\"");

/// Searches `program` for the name of every fault point. Returns their number.
pub fn absent_from(program: &Path) -> Result<usize> {
    let mut names = BTreeSet::new();
    for name in ["rtps", "shm", "dcps", "runtime", "pteros", "container"] {
        collect(&root().join("crates").join(name).join("src"), &mut names)?;
    }
    ensure!(!names.is_empty(), "the sources name no fault point");
    let short = names.iter().find(|name| name.len() < 2);
    ensure!(short.is_none(), "fault point {short:?} is too short a name");
    let bytes = fs::read(program).with_context(|| format!("read {}", program.display()))?;
    if let Some(name) = first_contained(&bytes, &names) {
        bail!("{} contains the fault point {name}", program.display());
    }
    Ok(names.len())
}

/// The first of `names` that `bytes` contains. One pass, which compares names only
/// where their first two bytes stand: this build is not optimized, and a program has
/// hundreds of megabytes.
fn first_contained<'n>(bytes: &[u8], names: &'n BTreeSet<String>) -> Option<&'n str> {
    let start = |text: &[u8]| usize::from(text[0]) << 8 | usize::from(text[1]);
    let mut starts = vec![false; 1 << 16];
    for name in names {
        starts[start(name.as_bytes())] = true;
    }
    bytes.windows(2).enumerate().find_map(|(at, pair)| {
        if !starts[start(pair)] {
            return None;
        }
        let rest = &bytes[at..];
        let found = names.iter().find(|name| rest.starts_with(name.as_bytes()));
        found.map(String::as_str)
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contained_name_is_found_also_at_the_end() {
        let names: BTreeSet<String> = ["writer-forgets", "wrong"].map(String::from).into();
        let find = |text: &str| first_contained(text.as_bytes(), &names).map(str::to_owned);
        assert_eq!(find("a writer-forget, wron"), None);
        assert_eq!(
            find("some wwriter-forgets it"),
            Some("writer-forgets".into())
        );
        assert_eq!(find("it is wrong"), Some("wrong".into()));
    }
}
