//! Project tasks: `cargo xtask <task>`. One module per task.
#![allow(clippy::disallowed_methods, reason = "runs on a real machine")]

mod bench;
mod book;
mod build_time;
mod checkout;
mod corpus;
mod counts;
mod coverage;
mod dist;
mod documents;
mod figures;
mod finding;
mod flood;
mod fuzz;
mod generate;
mod help;
mod limited_command;
mod lines;
mod loom;
mod mutants;
mod namespace;
mod nightly;
mod peers;
mod peers_check;
mod picture;
mod progress;
mod prose;
mod ros2;
mod seeded_bugs;
mod sim;
mod test;
mod test_process;
mod test_programs;
mod tidy;
mod tree_copy;
mod wheel;
mod zig_build;

use anyhow::{Result, bail};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let task = arguments.next().unwrap_or_default();
    let rest: Vec<String> = arguments.collect();
    match task.as_str() {
        "generate" => println!("{}", generate::run(&rest)?),
        "test" if test::run(&rest)? => {}
        "test" => std::process::exit(1),
        "tidy" => println!("{}", tidy::run(&rest)?),
        "book" => println!("{}", book::run(&rest)?),
        "prose" => prose::run(&rest)?,
        "lines" => println!("{}", lines::run(&rest)?),
        "fuzz" if fuzz::run(&rest)? => {}
        "fuzz" => std::process::exit(1),
        "mutants" => mutants::run(&rest)?,
        "nightly" if nightly::run(&rest)? => {}
        "nightly" => std::process::exit(1),
        "ros2" if ros2::run(&rest)? => {}
        "ros2" => std::process::exit(1),
        ros2::SOAK_INSIDE_TASK if ros2::run_soak_inside(&rest)? => {}
        ros2::SOAK_INSIDE_TASK => std::process::exit(1),
        ros2::PROGRAMS_INSIDE_TASK if ros2::run_programs_inside(&rest)? => {}
        ros2::PROGRAMS_INSIDE_TASK => std::process::exit(1),
        "peers" => peers::run(&rest)?,
        peers_check::INSIDE_TASK => peers_check::run_inside(&rest)?,
        "bench" if rest.first().is_some_and(|what| what == "build") => {
            exit_as(build_time::run(rest.get(1..).unwrap_or_default())?)
        }
        "picture" => println!("{}", picture::run(&rest)?),
        "dist" => println!("{}", dist::run(&rest)?),
        "wheel" => println!("{}", wheel::run(&rest)?),
        "bench" => exit_as(bench::run(&rest)?),
        "flood" => exit_as(flood::run(&rest)?),
        flood::INSIDE_TASK => flood::run_inside(&rest)?,
        flood::ATTACKER_TASK => flood::attack(&rest)?,
        "namespace" => exit_as(namespace::run(&rest)?),
        "sim" => exit_as(sim::run(&rest)?),
        "corpus" => exit_as(corpus::run(&rest)?),
        "loom" => exit_as(loom::run(&rest)?),
        namespace::INSIDE_TASK => exit_as(namespace::run_inside(&rest)?),
        "--help" | "-h" | "help" => print!("{}", help::text()),
        "" => bail!("no task is named\n\n{}", help::text()),
        unknown => bail!("{}", help::unknown(unknown)),
    }
    Ok(())
}

/// Exits with the command's status. A signal gives the exit code that a shell uses.
fn exit_as(status: std::process::ExitStatus) -> ! {
    use std::os::unix::process::ExitStatusExt;
    std::process::exit(
        status
            .code()
            .unwrap_or_else(|| 128 + status.signal().unwrap_or(0)),
    )
}
