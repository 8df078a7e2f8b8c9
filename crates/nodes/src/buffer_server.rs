//! `tf2_ros buffer_server`: looks transforms up for nodes that keep no buffer, by the
//! action `tf2_buffer_server`, as ROS 2's program of that name.
//!
//! A goal ends when its transform is there. Once its timeout has passed it is aborted. A
//! goal without a timeout gets the transform, or the reason why there is none, at once.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use pteros::action::{ActionServerOptions, ServerGoalHandle};
use pteros::clock::{ClockType, Time};
use pteros::component::ComponentError;
use pteros::error;
use pteros::interfaces::geometry_msgs::msg::TransformStamped;
use pteros::interfaces::tf2_msgs::action::{
    LookupTransform, LookupTransformGoal, LookupTransformResult,
};
use pteros::interfaces::tf2_msgs::msg::TF2Error;
use pteros::prelude::*;
use pteros::tf::{LookupError, TransformBuffer, TransformBufferOptions, TransformListener};

use crate::running_node::RunningNode;

/// How often waiting goals are checked, as upstream.
const CHECK_PERIOD: Duration = Duration::from_millis(10);
/// Most goals, with those that have ended and whose result is kept. When full, the action
/// refuses further ones.
const GOALS_MAX: usize = 1000;

/// Starts the node.
pub(crate) fn start(
    context: &Context,
    options: NodeOptions,
    _: &[String],
) -> Result<RunningNode, ComponentError> {
    let node = context.create_node(options.name("tf_buffer"))?;
    let size = node.declare_parameter("buffer_size", 120.0)?.value();
    let cache_time = Duration::try_from_secs_f64(size)
        .map_err(|error| format!("buffer_size = {size}: {error}; it is a time in seconds"))?;
    let options = TransformBufferOptions {
        cache_time,
        ..TransformBufferOptions::default()
    };
    let transforms = TransformListener::with_options(&node, options)?;
    let buffer = transforms.buffer().clone();
    let waiting: Arc<Mutex<Vec<WaitingGoal>>> = Arc::default();
    let clock = node.clock_of(ClockType::SteadyTime);
    let timer: Arc<OnceLock<Timer>> = Arc::default();
    let (logger, checked, own) = (node.logger(), waiting.clone(), Arc::downgrade(&timer));
    let (looked_up, now) = (buffer.clone(), clock.clone());
    let check = node.create_timer(CHECK_PERIOD, move || {
        let now = now.now();
        let mut waiting = checked.lock();
        waiting.retain(|goal| match goal.end(&looked_up, now) {
            None => true,
            Some(Ok(())) => false,
            Some(Err(problem)) => {
                error!(logger, "{problem}");
                false
            }
        });
        // It runs while goals wait.
        if let (true, Some(own)) = (waiting.is_empty(), own.upgrade())
            && let Some(timer) = own.get()
        {
            timer.cancel();
        }
    })?;
    timer.get_or_init(|| check).cancel();
    let (logger, check) = (node.logger(), timer.clone());
    let options = ActionServerOptions::new("tf2_buffer_server").goals_max(GOALS_MAX);
    let server = node.create_action_server::<LookupTransform>(options, move |goal| {
        let timeout = timeout(goal.goal());
        let found = look_up(&buffer, goal.goal());
        if found.is_err() && !timeout.is_zero() {
            let deadline = clock.now() + timeout;
            let mut waiting = waiting.lock();
            waiting.push(WaitingGoal { goal, deadline });
            if let (1, Some(timer)) = (waiting.len(), check.get()) {
                timer.reset();
            }
        } else if let Err(problem) = goal.succeed(result(found)) {
            error!(logger, "{problem}");
        }
    })?;
    Ok(RunningNode::new(node, (server, timer, transforms)))
}

struct WaitingGoal {
    goal: ServerGoalHandle<LookupTransform>,
    deadline: Time,
}

impl WaitingGoal {
    /// Ends the goal if it is time for it; `None` while it waits.
    fn end(
        &self,
        buffer: &TransformBuffer,
        now: Time,
    ) -> Option<Result<(), pteros::action::ActionError>> {
        if !self.goal.is_active() {
            return Some(Ok(()));
        }
        if self.goal.is_canceling() {
            return Some(self.goal.canceled(LookupTransformResult::default()));
        }
        if let found @ Ok(_) = look_up(buffer, self.goal.goal()) {
            return Some(self.goal.succeed(result(found)));
        }
        // Upstream's client takes an aborted goal for a timeout, whatever its result says.
        let is_late = self.deadline < now;
        is_late.then(|| self.goal.abort(LookupTransformResult::default()))
    }
}

fn timeout(goal: &LookupTransformGoal) -> Duration {
    let seconds = u64::try_from(goal.timeout.sec).unwrap_or(0);
    Duration::new(seconds, goal.timeout.nanosec)
}

fn look_up(
    buffer: &TransformBuffer,
    goal: &LookupTransformGoal,
) -> Result<TransformStamped, LookupError> {
    let source_time = Time::from(&goal.source_time);
    if !goal.advanced {
        return buffer.lookup_transform(&goal.target_frame, &goal.source_frame, source_time);
    }
    buffer.lookup_transform_full(
        &goal.target_frame,
        Time::from(&goal.target_time),
        &goal.source_frame,
        source_time,
        &goal.fixed_frame,
    )
}

fn result(found: Result<TransformStamped, LookupError>) -> LookupTransformResult {
    let mut result = LookupTransformResult::default();
    match found {
        Ok(transform) => result.transform = transform,
        Err(problem) => {
            let (exception, text) = problem.as_tf2();
            result.error = TF2Error {
                error: match exception {
                    "LookupException" => TF2Error::LOOKUP_ERROR,
                    "ConnectivityException" => TF2Error::CONNECTIVITY_ERROR,
                    "ExtrapolationException" => TF2Error::EXTRAPOLATION_ERROR,
                    "InvalidArgumentException" => TF2Error::INVALID_ARGUMENT_ERROR,
                    _ => TF2Error::TRANSFORM_ERROR,
                },
                error_string: text,
            };
        }
    }
    result
}
