//! Project tasks: `cargo xtask <task>`. One module per task.
#![allow(clippy::disallowed_methods, reason = "runs on a real machine")]

mod bench;
mod book;
mod build_time;
mod c_library;
mod checkout;
mod command;
mod corpus;
mod counts;
mod coverage;
mod cross;
mod dist;
mod documents;
mod figures;
mod finding;
mod flood;
mod fuzz;
mod generate;
mod limited_command;
mod lines;
mod loom;
mod machine;
mod mutants;
mod namespace;
mod nightly;
mod package_build;
mod peers;
mod peers_check;
mod picture;
mod plug_ins;
mod progress;
mod prose;
mod ros2;
mod seeded_bugs;
mod sim;
mod test;
mod test_jobs;
mod test_lanes;
mod test_process;
mod test_programs;
mod test_queue;
mod tidy;
mod tree_copy;
mod wheel;

use std::process::ExitStatus;

use anyhow::Result;
use clap::Parser as _;

use command::{CommandLine, Task};

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    // Not by the parser, because what follows is the command line of another program.
    if let Some((task, rest)) = words.split_first()
        && task == namespace::INSIDE_TASK
    {
        exit_as(namespace::run_inside(rest)?)
    }
    let has_passed = match CommandLine::parse().task {
        Task::Test(arguments) => test::run(&arguments)?,
        Task::Ros2(arguments) => ros2::run(&arguments)?,
        Task::Ros2SoakInside(options) => ros2::run_soak_inside(&options.words)?,
        Task::Ros2ProgramsInside(options) => ros2::run_programs_inside(&options.words)?,
        Task::Ros2InTests => ros2::run_in_tests()?,
        Task::Fuzz(arguments) => fuzz::run(&arguments)?,
        Task::Nightly(arguments) => nightly::run(arguments)?,
        Task::Namespace(arguments) => exit_as(namespace::run(&arguments)?),
        Task::Sim(options) => exit_as(sim::run(&options.words)?),
        Task::Loom => exit_as(loom::run()?),
        Task::Flood(arguments) => exit_as(flood::run(&arguments)?),
        Task::Corpus(options) => exit_as(corpus::run(&options.words)?),
        Task::Bench(arguments) => exit_as(bench::run(&arguments)?),
        Task::Peers(arguments) => done(peers::run(&arguments)?),
        Task::PeersCheckInside(options) => done(peers_check::run_inside(&options.words)?),
        Task::CrossPairsInside(options) => done(cross::run_pairs_inside(&options.words)?),
        Task::FloodInside(arguments) => done(flood::run_inside(arguments)?),
        Task::FloodAttacker(attack) => done(attack.run()?),
        Task::Mutants(arguments) => done(mutants::run(arguments)?),
        Task::Prose(arguments) => done(prose::run(&arguments)?),
        Task::Tidy(arguments) => say(tidy::run(&arguments)?),
        Task::Lines => say(lines::run()?),
        Task::Generate(arguments) => say(generate::run(&arguments)?),
        Task::Book => say(book::run()?),
        Task::Picture(arguments) => say(picture::run(arguments)?),
        Task::Cross(arguments) => say(cross::run(&arguments)?.to_string()),
        Task::Dist(arguments) => say(dist::run(&arguments)?),
        Task::Wheel(arguments) => say(wheel::run(arguments)?),
        Task::CLibrary(arguments) => say(c_library::run(&arguments)?),
    };
    std::process::exit(i32::from(!has_passed))
}

/// A task that has returned has passed.
fn done((): ()) -> bool {
    true
}

/// Prints the result of a task that has passed.
fn say(text: String) -> bool {
    println!("{text}");
    true
}

/// Exits with the command's status. A signal gives the exit code that a shell uses.
fn exit_as(status: ExitStatus) -> ! {
    use std::os::unix::process::ExitStatusExt;
    std::process::exit(
        status
            .code()
            .unwrap_or_else(|| 128 + status.signal().unwrap_or(0)),
    )
}
