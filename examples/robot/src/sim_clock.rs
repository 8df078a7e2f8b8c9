//! Simulated time at any speed.

use std::time::Duration;

use pteros::clock::{ClockServer, Time};
use pteros::component::{Component, ComponentError};
use pteros::parameter::ParameterDescriptor;
use pteros::prelude::*;

/// Publishes `/clock` a hundred times per second of real time. The others follow it
/// if their `use_sim_time` is true.
///
/// Parameter `speed`: seconds of simulated time in one of real time, 1 at first; may
/// be set at any time. 0 lets time stand.
pub struct SimClock {
    node: Node,
    _clock: ClockServer,
    _speed: pteros::parameter::ParameterCallback,
}

impl Component for SimClock {
    fn new(context: &Context, options: NodeOptions) -> Result<Self, ComponentError> {
        let node = context.node_with(options.name("sim_clock"))?;
        let start = Time::from_nanos(1_000_000_000);
        let clock = ClockServer::new(&node, start, Duration::from_millis(10))?;
        let range = ParameterDescriptor::new().float_range(0.0, 100.0, 0.0);
        let speed = node.declare_parameter_with("speed", 1.0, range)?;
        clock.set_speed(speed.value())?;
        let follows = clock.clone();
        let callback = node.on_post_set_parameters(move |_| {
            // The range allows no speed that is refused.
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
