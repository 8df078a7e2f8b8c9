//! `-S`: reads shapes periodically and prints them.

use std::time::Duration;

use pteros::interfaces::dds_shapes::msg::ShapeType;
use pteros::prelude::*;
use pteros::qos::QosProfile;
use pteros::{
    SubscriptionOptions,
    instance::{InstanceState, ReceivedChange},
    subscription::SubscriptionGroup,
};

use crate::arguments::Arguments;
use crate::report::{self, EndpointSide};
use crate::topics;

/// Reads until Ctrl-C or for the given number of times.
pub fn run(node: &Node, arguments: &Arguments, profile: &QosProfile) -> anyhow::Result<()> {
    let presentation = arguments.presentation();
    let group = if presentation.coherent || presentation.ordered {
        Some(SubscriptionGroup::new(node, presentation)?)
    } else {
        None
    };
    let mut readers = Vec::new();
    for topic in topics(arguments) {
        println!("Create topic: {topic}");
        let mut options = SubscriptionOptions::<ShapeType>::new(topic.as_str().qos(profile));
        if let Some(color) = &arguments.color {
            options = options.content_filter("color = %0", [format!("'{color}'")]);
        } else if let Some(expression) = &arguments.cft {
            options = options.content_filter(expression, [""; 0]);
        }
        let reader = match &group {
            Some(group) => group.create_polled_subscription(options)?,
            None => node.create_polled_subscription(options)?,
        };
        readers.push((topic.clone(), reader));
        println!("Create reader for topic: {topic}");
    }
    let period = Duration::from_millis(arguments.read_period);
    let mut iteration = 0;
    while !node.context().is_shut_down() {
        for (topic, reader) in &readers {
            while let Some(event) = reader.take_event() {
                println!("{}", report::line(EndpointSide::Reader, topic, &event));
            }
            if group.is_some() {
                continue;
            }
            while let Some(change) = reader.take_change() {
                println!("{}", line(topic, &change));
            }
        }
        if let Some(group) = &group {
            print_sets(group, &readers);
        }
        iteration += 1;
        if arguments.num_iterations.is_some_and(|max| iteration >= max) {
            break;
        }
        node.spin_until(|| false, period);
    }
    for (topic, reader) in &readers {
        println!("Counts of topic {topic}: {:?}", reader.counts());
    }
    Ok(())
}

/// Prints the available samples of all topics, in the order of the access scope.
fn print_sets(group: &SubscriptionGroup, readers: &[(String, Subscription<ShapeType>)]) {
    let access = group.begin_access();
    while let Some(next) = group.take() {
        for (topic, reader) in readers {
            if let Some(change) = next.change_of(reader) {
                println!("{}", line(topic, &change));
            }
        }
    }
    access.end();
}

fn line(topic: &str, change: &ReceivedChange<ShapeType>) -> String {
    match change {
        ReceivedChange::Sample(shape) => crate::publish::line(topic, shape),
        ReceivedChange::End(end) => {
            let state = match end.state() {
                InstanceState::Disposed => "NOT_ALIVE_DISPOSED_INSTANCE_STATE",
                InstanceState::NoWriters => "NOT_ALIVE_NO_WRITERS_INSTANCE_STATE",
                InstanceState::Alive => "ALIVE_INSTANCE_STATE",
            };
            format!("{topic:<10} {:<10} {state}", end.key().color)
        }
    }
}
