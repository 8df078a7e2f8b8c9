//! `-P`: shapes that move in a field and bounce off its borders.

use std::time::Duration;

use pteros::PublisherOptions;
use pteros::interfaces::dds_shapes::msg::ShapeType;
use pteros::prelude::*;
use pteros::publisher::PublisherGroup;
use pteros::qos::QosProfile;

use crate::arguments::{Arguments, FinalState};
use crate::report::{self, EndpointSide};
use crate::{numbered, topics};

const WIDTH: i32 = 240;
const HEIGHT: i32 = 270;

/// Publishes until Ctrl-C or for the given number of times. Then it ends the
/// instances as requested and waits at most a second for acknowledgements.
pub fn run(node: &Node, arguments: &Arguments, profile: &QosProfile) -> anyhow::Result<()> {
    let colors = numbered(arguments.color(), arguments.num_instances);
    let group = PublisherGroup::new(node, arguments.presentation())?;
    let mut writers = Vec::new();
    for topic in topics(arguments) {
        println!("Create topic: {topic}");
        let options = PublisherOptions::new(topic.as_str().qos(profile));
        let writer = group.create_publisher::<ShapeType>(options)?;
        println!("Create writer for topic: {topic} color: {}", colors[0]);
        writers.push((topic, writer));
    }
    let mut wanderer = MovingShape::new(arguments);
    let period = Duration::from_millis(arguments.write_period);
    let mut iteration = 0;
    let mut set = None;
    let set_length = arguments.coherent_sample_count;
    while !node.context().is_shut_down() {
        wanderer.step(arguments);
        if set_length > 0 && iteration % set_length == 0 {
            println!("Started Coherent Set");
            set = Some(group.begin_coherent_changes()?);
        }
        for (topic, writer) in &writers {
            while let Some(event) = writer.take_event() {
                println!("{}", report::line(EndpointSide::Writer, topic, &event));
            }
            for color in &colors {
                wanderer.shape.color.clone_from(color);
                writer.publish(&wanderer.shape)?;
                if arguments.print_writer_samples {
                    println!("{}", line(topic, &wanderer.shape));
                }
            }
        }
        iteration += 1;
        if set_length > 0 && iteration % set_length == 0 {
            println!("Finished Coherent Set");
            drop(set.take());
        }
        node.spin_until(|| false, period);
        if arguments.num_iterations.is_some_and(|max| iteration >= max) {
            break;
        }
    }
    drop(set);
    for (topic, writer) in &writers {
        for color in &colors {
            wanderer.shape.color.clone_from(color);
            match arguments.final_instance_state {
                None => {}
                Some(FinalState::Unregister) => writer.unregister(&wanderer.shape)?,
                Some(FinalState::Dispose) => writer.dispose(&wanderer.shape)?,
            }
        }
        writer.wait_for_all_acked(Duration::from_secs(1));
        println!("Counts of topic {topic}: {:?}", writer.counts());
    }
    Ok(())
}

/// A shape in the format of the OMG's program; the last byte of a payload in
/// braces.
pub fn line(topic: &str, shape: &ShapeType) -> String {
    let mut line = format!(
        "{topic:<10} {:<10} {:03} {:03} [{}]",
        shape.color, shape.x, shape.y, shape.shapesize
    );
    if let Some(last) = shape.additional_payload_size.last() {
        line += &format!(" {{{last}}}");
    }
    line
}

/// A shape and its velocity.
struct MovingShape {
    shape: ShapeType,
    velocity: (i32, i32),
}

impl MovingShape {
    fn new(arguments: &Arguments) -> Self {
        let speed = || fastrand::i32(1..=5) * if fastrand::bool() { 1 } else { -1 };
        Self {
            shape: ShapeType {
                color: String::new(),
                x: fastrand::i32(0..WIDTH),
                y: fastrand::i32(0..HEIGHT),
                shapesize: arguments.shapesize,
                additional_payload_size: vec![255; arguments.additional_payload_size],
            },
            velocity: (speed(), speed()),
        }
    }

    fn step(&mut self, arguments: &Arguments) {
        bounce(&mut self.shape.x, &mut self.velocity.0, WIDTH);
        bounce(&mut self.shape.y, &mut self.velocity.1, HEIGHT);
        if arguments.shapesize == 0 {
            let size = match arguments.size_modulo {
                Some(modulo) => self.shape.shapesize % modulo,
                None => self.shape.shapesize,
            };
            self.shape.shapesize = size.saturating_add(1);
        }
    }
}

fn bounce(place: &mut i32, velocity: &mut i32, limit: i32) {
    *place += *velocity;
    if !(0..=limit).contains(place) {
        *place = (*place).clamp(0, limit);
        *velocity = -*velocity;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_stay_in_the_field() {
        let (mut place, mut velocity) = (238, 5);
        for _ in 0..1_000 {
            bounce(&mut place, &mut velocity, WIDTH);
            assert!((0..=WIDTH).contains(&place));
        }
    }

    #[test]
    fn a_shape_is_printed_in_columns() {
        let shape = ShapeType {
            color: "BLUE".into(),
            x: 7,
            y: 120,
            shapesize: 30,
            additional_payload_size: vec![1, 255],
        };
        assert_eq!(
            line("Square", &shape),
            "Square     BLUE       007 120 [30] {255}"
        );
    }
}
