//! One node of the robot as a process, or all of them statically composed:
//! `robot base|laser|map_server|planner|controller|supervisor|sim_clock|all [--ros-args …]`.
//! The supervisor brings planner and controller up.
#![allow(clippy::disallowed_methods, reason = "the supervisor blocks a thread")]

use std::time::Duration;

use pteros::component::{Component, ComponentError};
use pteros::lifecycle::{LifecycleSupervisor, LossPolicy, SupervisedNode};
use pteros::prelude::*;
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
        supervise(&context);
        return Ok(());
    }
    let executor = SingleThreadedExecutor::new(&context);
    let parts = match part.as_str() {
        "all" => &["base", "laser", "map_server", "planner", "controller"][..],
        part => &[part],
    };
    let made = parts
        .iter()
        .map(|part| create_component(part, &context, &executor));
    let _kept = made.collect::<Result<Vec<_>, _>>()?;
    if part == "all" {
        let context = context.clone();
        std::thread::spawn(move || supervise(&context));
    }
    executor.spin();
    Ok(())
}

/// Brings the managed nodes up, and again after a restart, until Ctrl-C.
fn supervise(context: &Context) {
    // They become active when map and transforms are available, in any start order.
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

type KeptAlive = Box<dyn std::any::Any>;

fn create_component(
    part: &str,
    context: &Context,
    executor: &SingleThreadedExecutor,
) -> Result<KeptAlive, ComponentError> {
    fn one<C: Component>(
        context: &Context,
        executor: &SingleThreadedExecutor,
    ) -> Result<KeptAlive, ComponentError> {
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
