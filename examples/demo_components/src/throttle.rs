//! Throttle component: forwards messages of any type at a limited rate.

use std::time::{Duration, SystemTime};

use pteros::PublisherOptions;
use pteros::SubscriptionOptions;
use pteros::component::{Component, ComponentError};
use pteros::msg::dynamic::DynamicMessage;
use pteros::msg::dynamic::DynamicType;
use pteros::parameter::ParameterDescriptor;
use pteros::prelude::*;
use pteros::subscription::{SerializedMessage, SerializedType};

/// Publishes on `output` the messages of `input`, unchanged and without decoding.
///
/// Parameters:
///
/// - `type`: message type, as `sensor_msgs/msg/Image`; required.
/// - `rate`: largest number of messages per second; 0, the default, for all.
/// - `reliable`: requests reliable delivery. It is off by default, since a reliable
///   subscription does not match best-effort publishers.
pub struct Throttle {
    node: Node,
    _input: Subscription<SerializedMessage>,
}

impl Component for Throttle {
    fn new(context: &Context, options: NodeOptions) -> Result<Self, ComponentError> {
        let node = context.create_node(options.name("throttle"))?;
        let type_name = node
            .declare_required_parameter::<String>("type", type_descriptor())?
            .value();
        let rate = node.declare_parameter("rate", 0.0)?.value();
        let qos = if node.declare_parameter("reliable", false)?.value() {
            QosProfile::default()
        } else {
            QosProfile::sensor_data()
        };
        let least = match rate {
            0.0 => Duration::ZERO,
            rate => crate::period::period(rate)?,
        };
        let mut library = pteros::interfaces::library().clone();
        library.load_ament_prefix_path()?;
        let ty = DynamicType::new(&library.describe(&type_name)?)?;
        let output =
            node.create_publisher::<DynamicMessage>(PublisherOptions::of_type(&ty, "output"))?;
        let (mut last, name) = (None, node.logger_name());
        let pass = move |message: Sample<SerializedMessage>| {
            if !is_due(&mut last, message.info().received_timestamp, least) {
                return;
            }
            if let Err(error) = output.publish_serialized(message.into_inner().0) {
                tracing::warn!("[{name}] {error}");
            }
        };
        let options = SubscriptionOptions::of_type(
            &SerializedType::new(ty.name(), Some(ty.hash())),
            "input".qos(qos),
        );
        let input = node.create_subscription(options, pass)?;
        Ok(Self {
            node,
            _input: input,
        })
    }

    fn node(&self) -> &Node {
        &self.node
    }
}

/// Descriptor of the parameter `type`.
pub fn type_descriptor() -> ParameterDescriptor {
    let words = "type of the messages, such as sensor_msgs/msg/Image";
    ParameterDescriptor::new().description(words).read_only()
}

/// Whether the period has passed since the last message that was due. A clock that
/// was set back starts a new period.
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
    fn early_messages_are_dropped_and_a_clock_set_back_does_not_stop_the_throttle() {
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
