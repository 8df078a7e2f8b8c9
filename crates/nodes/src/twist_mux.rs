//! `twist_mux`: of several sources of velocities, passes on the one with the highest
//! priority, unless a lock masks it. As ROS 2's node of that name.
//!
//! A source or a lock with a timeout expires when nothing came for so long. An expired
//! source is ignored; an expired lock locks.

use std::sync::Arc;

use parking_lot::Mutex;
use pteros::component::ComponentError;
use pteros::interfaces::geometry_msgs::msg::{Twist, TwistStamped};
use pteros::interfaces::std_msgs::msg::Bool;
use pteros::prelude::*;
use pteros::{error, info};

use crate::any_parameter::{declaring_overrides, given_or, number, text, truth};
use crate::running_node::RunningNode;

/// Starts the node.
pub(crate) fn start(
    context: &Context,
    options: NodeOptions,
    _: &[String],
) -> Result<RunningNode, ComponentError> {
    let node = context.create_node(declaring_overrides(options.name("twist_mux")))?;
    if truth("use_stamped", &given_or(&node, "use_stamped", false)?)? {
        start_with::<TwistStamped>(node)
    } else {
        start_with::<Twist>(node)
    }
}

/// A source of velocities, or a lock.
#[derive(Debug)]
struct Input {
    name: String,
    topic: String,
    /// In ns; 0 for none.
    timeout: i64,
    priority: u8,
    /// The node's time when the last message came, in ns.
    received: i64,
    /// Only of a lock: what the last message says.
    is_locked: bool,
}

#[derive(Debug, Default)]
struct Arbiter {
    sources: Vec<Input>,
    locks: Vec<Input>,
}

fn start_with<M: Message + pteros::msg::type_support::MessageTypeSupport<Support = ()>>(
    node: Node,
) -> Result<RunningNode, ComponentError> {
    let arbiter = Arbiter {
        sources: inputs(&node, "topics")?,
        locks: inputs(&node, "locks")?,
    };
    let topics = |inputs: &[Input]| -> Vec<String> {
        inputs.iter().map(|input| input.topic.clone()).collect()
    };
    let (sources, locks) = (topics(&arbiter.sources), topics(&arbiter.locks));
    let arbiter = Arc::new(Mutex::new(arbiter));
    let output = node.create_publisher::<M>("cmd_vel_out".keep_last(1))?;
    let mut velocities = Vec::new();
    for (index, topic) in sources.into_iter().enumerate() {
        let (arbiter, output, clock) = (arbiter.clone(), output.clone(), node.clock());
        let logger = node.logger();
        let pass_on = move |velocity: Sample<M>| {
            let is_chosen = arbiter.lock().chooses(index, clock.now().as_nanos());
            if is_chosen && let Err(problem) = output.publish_arc(velocity.into_shared()) {
                error!(logger, "{problem}");
            }
        };
        let topic = topic.qos(QosProfile::system_default());
        velocities.push(node.create_subscription::<M>(topic, pass_on)?);
    }
    let mut lock_topics = Vec::new();
    for (index, topic) in locks.into_iter().enumerate() {
        let (arbiter, clock) = (arbiter.clone(), node.clock());
        let lock = move |lock: Sample<Bool>| {
            let now = clock.now().as_nanos();
            if let Some(input) = arbiter.lock().locks.get_mut(index) {
                input.received = now;
                input.is_locked = lock.data;
            }
        };
        let topic = topic.qos(QosProfile::system_default());
        lock_topics.push(node.create_subscription(topic, lock)?);
    }
    Ok(RunningNode::new(node, (velocities, lock_topics)))
}

/// The inputs `GROUP.NAME.topic`, `.timeout` and `.priority` of the parameters.
fn inputs(node: &Node, group: &str) -> Result<Vec<Input>, ComponentError> {
    let prefix = format!("{group}.");
    let names = node.parameter_names(group);
    let names = names.iter().filter_map(|name| {
        let name = name.strip_prefix(&prefix)?.strip_suffix(".topic")?;
        Some(name.to_owned())
    });
    let mut inputs = Vec::new();
    for name in names.collect::<Vec<_>>() {
        let value = |part: &str| {
            let full = format!("{prefix}{name}.{part}");
            node.parameter(&full).map(|value| (full, value))
        };
        let (full, topic) = value("topic")?;
        let topic = text(&full, topic)?;
        let (full, timeout) = value("timeout")?;
        let timeout = number(&full, &timeout)?;
        let (full, priority) = value("priority")?;
        let priority = number(&full, &priority)?.clamp(0.0, 255.0);
        let shown = if timeout > 0.0 {
            format!("{timeout:.6}s")
        } else {
            "None".into()
        };
        info!(
            node.logger(),
            "Topic handler '{group}.{name}' subscribed to topic '{topic}': timeout = {shown} , priority = {priority}."
        );
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "clamped, and casts of numbers saturate"
        )]
        inputs.push(Input {
            name,
            topic,
            timeout: (timeout * 1e9) as i64,
            priority: priority as u8,
            received: 0,
            is_locked: false,
        });
    }
    // Of equal priorities the first by name wins.
    inputs.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(inputs)
}

impl Input {
    fn has_expired(&self, now: i64) -> bool {
        self.timeout > 0 && now.saturating_sub(self.received) > self.timeout
    }
}

impl Arbiter {
    /// Whether a velocity of this source, which came now, is passed on.
    fn chooses(&mut self, source: usize, now: i64) -> bool {
        if let Some(input) = self.sources.get_mut(source) {
            input.received = now;
        }
        let locks = self.locks.iter();
        let locked = locks.filter(|lock| lock.is_locked || lock.has_expired(now));
        let locked = locked.map(|lock| lock.priority).max().unwrap_or(0);
        let sources = self.sources.iter().enumerate();
        let open = sources.filter(|(_, input)| {
            // A priority of 0 never wins, as upstream.
            input.priority > 0 && input.priority >= locked && !input.has_expired(now)
        });
        // Of equal ones the first.
        let chosen = open.rev().max_by_key(|(_, input)| input.priority);
        chosen.is_some_and(|(index, _)| index == source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(priority: u8, timeout: i64) -> Input {
        Input {
            name: String::new(),
            topic: String::new(),
            timeout,
            priority,
            received: 0,
            is_locked: false,
        }
    }

    #[test]
    fn the_highest_live_source_passes_unless_a_lock_masks_it() {
        let mut arbiter = Arbiter {
            sources: vec![
                input(10, 500),
                input(100, 500),
                input(100, 500),
                input(0, 0),
            ],
            locks: vec![input(50, 0), input(200, 1000)],
        };
        arbiter.locks[1].received = 10_000;
        assert!(arbiter.chooses(0, 10_000), "the others have expired");
        assert!(arbiter.chooses(1, 10_100));
        assert!(!arbiter.chooses(0, 10_200), "a higher one is live");
        assert!(!arbiter.chooses(2, 10_300), "of equal ones the first");
        assert!(arbiter.chooses(2, 10_601), "the first has expired");
        arbiter.locks[1].received = 20_000;
        assert!(!arbiter.chooses(3, 20_000), "priority 0 never passes");
        arbiter.locks[0].is_locked = true;
        assert!(!arbiter.chooses(0, 20_000), "masked by a lock of 50");
        assert!(arbiter.chooses(1, 20_000), "above the lock");
        assert!(!arbiter.chooses(1, 21_001), "a silent lock locks");
    }
}
