//! The other stacks' programs for `cargo xtask bench host`, built on demand
//! under `target/interop`: C and C++ against Debian's packages, iceoryx2 and Zenoh
//! as cargo projects of their own, outside the workspace. What cannot be had is
//! said and left out of the comparison.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::peers::{Workplace, compiler, need, need_cyclone, need_fastdds, run_quietly};

/// Builds what is missing or old of the `wanted` contestants' programs, all when
/// none is named; the folder of the programs.
pub fn prepare(wanted: &[String]) -> Result<PathBuf> {
    let work = Workplace::open()?;
    type Build = fn(&Workplace) -> Result<()>;
    // What the names of a stack's contestants begin with, and its program.
    let list: [(&str, &str, Build); 5] = [
        ("floor", "floor", build_floor),
        ("cyclone", "cyclone-host", build_cyclone),
        ("fast", "fastdds-host", build_fastdds),
        ("iceoryx2", "iceoryx2-host", |work| {
            build_cargo(work, "iceoryx2")
        }),
        ("zenoh", "zenoh-host", |work| build_cargo(work, "zenoh")),
    ];
    for (stack, program, build) in list {
        let is_wanted = wanted.is_empty() || wanted.iter().any(|name| name.starts_with(stack));
        // Every run has the bare kernel's rows.
        if (is_wanted || stack == "floor")
            && let Err(why) = build(&work)
        {
            eprintln!("{program} missing: {why:#}");
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

fn build_fastdds(work: &Workplace) -> Result<()> {
    let program = work.programs.join("fastdds-host");
    let sources = [
        "host/fastdds.cpp",
        "host/host.h",
        "host/payload.idl",
        "peer.h",
        "array.idl",
    ];
    if work.is_fresh(&program, &sources) {
        return Ok(());
    }
    need_fastdds()?;
    let generated = work.empty_folder("fastdds-host")?;
    let mut cxx = compiler("g++", "c++17", &program);
    cxx.arg("-I").arg(&generated);
    cxx.arg(work.sources.join("host/fastdds.cpp"));
    for (name, folder) in [("array", ""), ("payload", "host")] {
        // It writes beside its input whatever -d says about includes.
        let idl = generated.join(format!("{name}.idl"));
        fs::copy(work.sources.join(folder).join(format!("{name}.idl")), &idl)?;
        let mut generator = Command::new("fastddsgen");
        generator.args(["-replace", "-d"]).arg(&generated).arg(&idl);
        run_quietly(generator.current_dir(&generated))?;
        cxx.arg(generated.join(format!("{name}.cxx")));
        cxx.arg(generated.join(format!("{name}PubSubTypes.cxx")));
    }
    run_quietly(cxx.args(["-lfastrtps", "-lfastcdr", "-lpthread"]))
}

/// A cargo project of its own in `interop/host/NAME`; its crates come from the
/// registry, as its lock file says.
fn build_cargo(work: &Workplace, name: &str) -> Result<()> {
    let program = work.programs.join(format!("{name}-host"));
    let file = |path: &str| format!("host/{name}/{path}");
    let files = ["src/main.rs", "Cargo.toml", "Cargo.lock"].map(file);
    let sources: Vec<&str> = files
        .iter()
        .map(String::as_str)
        .chain(["host/host.rs"])
        .collect();
    if work.is_fresh(&program, &sources) {
        return Ok(());
    }
    eprintln!("building {name}, which takes minutes the first time");
    let target = work.target.join("cargo");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--release", "--locked", "--quiet"]);
    build.current_dir(work.sources.join("host").join(name));
    run_quietly(build.env("CARGO_TARGET_DIR", &target))
        .with_context(|| format!("needs {name} from the crate registry"))?;
    fs::copy(target.join("release").join(format!("{name}-host")), program)?;
    Ok(())
}
