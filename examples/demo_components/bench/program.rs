//! Benchmark of static composition: `empty N`, `bare N`, `graph`, or `row I` for
//! one node of the graph. It prints `ready` when all nodes exist.

use pteros::component::{Component, ComponentError};
use pteros::parameter::{Parameter, ParameterValue};
use pteros::prelude::*;

use crate::nodes::{Bare, Empty, GRAPH_NODES, GraphNode, name_of};

pub fn main() -> Result<(), ComponentError> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let context = Context::new()?;
    let executor = SingleThreadedExecutor::new(&context);
    let mut kept: Vec<Box<dyn std::any::Any>> = Vec::new();
    let mut rows = 0..0;
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["empty", count] => add::<Empty>(&context, &executor, count, &mut kept)?,
        ["bare", count] => add::<Bare>(&context, &executor, count, &mut kept)?,
        ["graph"] => rows = 0..GRAPH_NODES,
        ["row", row] => {
            let row = row.parse()?;
            rows = row..row + 1;
        }
        _ => return Err("usage: empty N | bare N | graph | row I".into()),
    }
    for row in rows {
        let which = Parameter {
            name: "row".into(),
            value: ParameterValue::Integer(i64::try_from(row)?),
        };
        let options = NodeOptions::default()
            .parameter_overrides([which])
            .arguments(renamed(name_of(row))?);
        let node = GraphNode::new(&context, options)?;
        executor.add_node(node.node())?;
        kept.push(Box::new(node));
    }
    println!("ready");
    executor.spin();
    Ok(())
}

fn add<C: Component>(
    context: &Context,
    executor: &SingleThreadedExecutor,
    count: &str,
    kept: &mut Vec<Box<dyn std::any::Any>>,
) -> Result<(), ComponentError> {
    for number in 0..count.parse::<usize>()? {
        // Each process has its own node names.
        let name = format!("empty_{}_{number}", std::process::id());
        let options = NodeOptions::default().arguments(renamed(&name)?);
        let node = C::new(context, options)?;
        executor.add_node(node.node())?;
        kept.push(Box::new(node));
    }
    Ok(())
}

fn renamed(name: &str) -> Result<pteros::args::Arguments, ComponentError> {
    let words = ["--ros-args".into(), "-r".into(), format!("__node:={name}")];
    let (arguments, _) = pteros::args::Arguments::parse(words)?;
    Ok(arguments)
}
