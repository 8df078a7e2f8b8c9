//! The other stacks' programs for `cargo xtask bench host`, built on demand
//! under `target/interop`: C and C++ against Debian's packages, iceoryx2 and Zenoh
//! as cargo projects of their own, outside the workspace. What cannot be had is
//! said and left out of the comparison.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::peers::{Workplace, compiler, need, need_cyclone, run_quietly};

/// Builds what is missing or old; the folder of the programs.
pub fn prepare() -> Result<PathBuf> {
    let work = Workplace::open()?;
    let list = [
        ("floor", build_floor(&work)),
        ("cyclone-host", build_cyclone(&work)),
    ];
    for (name, outcome) in list {
        if let Err(why) = outcome {
            eprintln!("{name} missing: {why:#}");
        }
    }
    Ok(work.programs)
}

fn build_floor(work: &Workplace) -> Result<()> {
    let program = work.programs.join("floor");
    if work.is_fresh(&program, &["host/floor.c", "peer.h"]) {
        return Ok(());
    }
    need("cc", "/usr/bin/cc", &["gcc", "libc6-dev"])?;
    let mut cc = compiler("cc", "gnu11", &program);
    run_quietly(cc.arg(work.sources.join("host/floor.c")).arg("-lpthread"))
}

fn build_cyclone(work: &Workplace) -> Result<()> {
    let program = work.programs.join("cyclone-host");
    let sources = ["host/cyclone.c", "host/host.h", "peer.h", "array.idl"];
    if work.is_fresh(&program, &sources) {
        return Ok(());
    }
    need_cyclone()?;
    let generated = work.empty_folder("cyclone-host")?;
    let mut idlc = Command::new("idlc");
    idlc.args(["-t", "-o"]).arg(&generated);
    run_quietly(idlc.arg(work.sources.join("array.idl")))?;
    let mut cc = compiler("cc", "gnu11", &program);
    cc.arg("-I").arg(&generated);
    cc.arg(work.sources.join("host/cyclone.c"));
    cc.arg(generated.join("array.c"));
    run_quietly(cc.args(["-lddsc", "-lpthread"]))
}
