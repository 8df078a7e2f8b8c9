//! Simulated clock with adjustable speed.

use std::time::Duration;

use pteros::clock::{ClockServer, Time};
use pteros::component::{Component, ComponentError};
use pteros::parameter::ParameterDescriptor;
use pteros::prelude::*;

/// Publishes `/clock` at 100 Hz of real time. Nodes use it if their `use_sim_time`
/// is true.
///
/// Parameter `speed`: simulated seconds per real second, 1 by default. It may be
/// changed at any time. 0 stops the time.
pub struct SimClock {
    node: Node,
    _clock: ClockServer,
    _speed: pteros::parameter::ParameterCallbackHandle,
}

impl Component for SimClock {
    fn new(context: &Context, options: NodeOptions) -> Result<Self, ComponentError> {
        let node = context.create_node(options.name("sim_clock"))?;
        let start = Time::from_nanos(1_000_000_000);
        let clock = ClockServer::new(&node, start, Duration::from_millis(10))?;
        let range = ParameterDescriptor::new().float_range(0.0, 100.0, 0.0);
        let speed = node.declare_parameter_with("speed", 1.0, range)?;
        clock.set_speed(speed.value())?;
        let follows = clock.clone();
        let callback = node.add_post_set_parameters_callback(move |_| {
            // The parameter's range excludes invalid speeds.
            let _ = follows.set_speed(speed.value());
        });
        Ok(Self {
            node,
            _clock: clock,
            _speed: callback,
        })
    }

    fn node(&self) -> &Node {
        &self.node
    }
}
