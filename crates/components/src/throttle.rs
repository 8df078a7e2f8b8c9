//! Passes messages of any type on, all or some of them.

use std::time::{Duration, SystemTime};

use pteros::SubscriptionOptions;
use pteros::component::{Component, ComponentError};
use pteros::msg::dynamic::DynamicType;
use pteros::parameter::ParameterDescriptor;
use pteros::prelude::*;

/// Publishes on `output` what comes on `input`, untouched and not decoded.
/// Parameters: `type`, as `sensor_msgs/msg/Image`, which must be given; `rate`: the most
/// messages a second, 0 (the default) for all; `reliable`: whether every message
/// is asked for, off by default, since best-effort publishers are not heard then.
pub struct Throttle {
    node: Node,
    _input: Subscription<bytes::Bytes>,
}

impl Component for Throttle {
    fn new(context: &Context, options: NodeOptions) -> Result<Self, ComponentError> {
        let node = context.node_with(options.name("throttle"))?;
        let type_name = node
            .declare_required_parameter::<String>("type", type_descriptor())?
            .value();
        let rate = node.declare_parameter("rate", 0.0)?.value();
        let qos = match node.declare_parameter("reliable", false)?.value() {
            true => QosProfile::default(),
            false => QosProfile::sensor_data(),
        };
        let least = match rate {
            0.0 => Duration::ZERO,
            rate => crate::period::period(rate)?,
        };
        let mut library = pteros::interfaces::library().clone();
        library.load_ament_prefix_path()?;
        let ty = DynamicType::new(&library.describe(&type_name)?)?;
        let output = node.create_dynamic_publisher("output", &ty, QosProfile::default())?;
        let (mut last, name) = (None, node.logger_name());
        let pass = move |message: Sample<bytes::Bytes>| {
            if !is_due(&mut last, message.info().reception_time, least) {
                return;
            }
            if let Err(error) = output.publish_serialized(message.into_inner()) {
                tracing::warn!("[{name}] {error}");
            }
        };
        let options = SubscriptionOptions::new(qos).callback(pass);
        let input = node.create_raw_subscription("input", ty.name(), Some(ty.hash()), options)?;
        Ok(Self {
            node,
            _input: input,
        })
    }

    fn node(&self) -> &Node {
        &self.node
    }
}

/// Of the parameter `type`.
pub fn type_descriptor() -> ParameterDescriptor {
    let words = "type of the messages, such as sensor_msgs/msg/Image";
    ParameterDescriptor::new().description(words).read_only()
}

/// Whether so much time has passed since the last that was due. A clock that was
/// set back begins anew.
fn is_due(last: &mut Option<SystemTime>, now: SystemTime, least: Duration) -> bool {
    let since = last.and_then(|last| now.duration_since(last).ok());
    let is_due = since.is_none_or(|since| since >= least);
    if is_due {
        *last = Some(now);
    }
    is_due
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_too_soon_is_left_out_and_a_clock_set_back_stops_nothing() {
        let at = |ms| SystemTime::UNIX_EPOCH + Duration::from_millis(ms);
        let (mut last, least) = (None, Duration::from_millis(100));
        let due: Vec<bool> = [1000, 1050, 1099, 1100, 1150, 300, 350, 400]
            .map(|ms| is_due(&mut last, at(ms), least))
            .into();
        let t = true;
        assert_eq!(due, [t, false, false, t, false, t, false, t]);
        assert!(is_due(&mut last, at(400), Duration::ZERO));
    }
}
