//! One part of the robot as a process, or all of it composed by hand:
//! `robot base|laser|map_server|planner|controller|supervisor|sim_clock|all
//! [--ros-args …]`. Planner and controller wait for the supervisor to bring them up.
#![allow(
    clippy::disallowed_methods,
    reason = "the supervisor blocks in a thread of its own"
)]

use std::time::Duration;

use pteros::component::{Component, ComponentError};
use pteros::prelude::*;
use pteros::{LifecycleSupervisor, LossPolicy, SupervisedNode};
use robot::{Base, Controller, Laser, MapServer, Planner, SimClock};

const USAGE: &str =
    "usage: robot base|laser|map_server|planner|controller|supervisor|sim_clock|all [--ros-args …]";

fn main() -> Result<(), ComponentError> {
    let (_, words) = pteros::args::Arguments::from_process()?;
    let [part] = &words[..] else {
        return Err(USAGE.into());
    };
    let context = Context::new()?;
    if part == "supervisor" {
        look_after(&context);
        return Ok(());
    }
    let executor = SingleThreadedExecutor::new(&context);
    let parts = match part.as_str() {
        "all" => &["base", "laser", "map_server", "planner", "controller"][..],
        part => &[part],
    };
    let made = parts.iter().map(|part| make(part, &context, &executor));
    let _kept = made.collect::<Result<Vec<_>, _>>()?;
    if part == "all" {
        let context = context.clone();
        std::thread::spawn(move || look_after(&context));
    }
    executor.spin();
    Ok(())
}

/// Brings the managed nodes up, and up again when one comes back, until Ctrl-C.
fn look_after(context: &Context) {
    // They are active when map and transforms are there, whoever starts last.
    let patience = LossPolicy::Restart {
        attempts: 100,
        backoff: Duration::from_millis(200),
        backoff_max: Duration::from_secs(1),
    };
    let planner = SupervisedNode::new("/planner").on_loss(patience);
    let controller = SupervisedNode::new("/controller").on_loss(patience);
    let nodes = [planner, controller.depends_on("/planner")];
    match LifecycleSupervisor::new(context, nodes) {
        Ok(mut supervisor) => {
            println!("{}", supervisor.bring_up());
            while !context.is_shut_down() {
                supervisor.watch(Duration::from_secs(1));
            }
        }
        Err(error) => eprintln!("supervisor: {error}"),
    }
}

type Kept = Box<dyn std::any::Any>;

fn make(
    part: &str,
    context: &Context,
    executor: &SingleThreadedExecutor,
) -> Result<Kept, ComponentError> {
    fn one<C: Component>(
        context: &Context,
        executor: &SingleThreadedExecutor,
    ) -> Result<Kept, ComponentError> {
        let component = C::new(context, NodeOptions::default())?;
        executor.add_node(component.node())?;
        Ok(Box::new(component))
    }
    match part {
        "base" => one::<Base>(context, executor),
        "laser" => one::<Laser>(context, executor),
        "map_server" => one::<MapServer>(context, executor),
        "planner" => one::<Planner>(context, executor),
        "controller" => one::<Controller>(context, executor),
        "sim_clock" => one::<SimClock>(context, executor),
        part => Err(format!("there is no part '{part}'; {USAGE}").into()),
    }
}
