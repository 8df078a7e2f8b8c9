//! tf2_ros buffer_server: goals that succeed, wait, time out, are cancelled, and fail.

use std::time::Duration;

use pteros::action::{ActionClient, GoalStatus};
use pteros::interfaces::geometry_msgs::msg::TransformStamped;
use pteros::interfaces::tf2_msgs::action::{
    LookupTransform, LookupTransformGoal, LookupTransformResult,
};
use pteros::interfaces::tf2_msgs::msg::TF2Error;
use pteros::tf::StaticTransformBroadcaster;

use crate::{Started, TIMEOUT, start, try_start};

struct Fixture {
    _started: Started,
    frames: StaticTransformBroadcaster,
    client: ActionClient<LookupTransform>,
}

impl Fixture {
    fn new() -> Self {
        let started = start("tf2_ros", "buffer_server", &[]);
        let client = started
            .test
            .create_action_client("/tf2_buffer_server")
            .unwrap();
        assert!(client.wait_for_action_server(TIMEOUT));
        Self {
            frames: StaticTransformBroadcaster::new(&started.test).unwrap(),
            client,
            _started: started,
        }
    }

    fn publish(&self, parent: &str, child: &str, x: f64) {
        let mut transform = TransformStamped::default();
        transform.header.frame_id = parent.into();
        transform.child_frame_id = child.into();
        transform.transform.translation.x = x;
        transform.transform.rotation.w = 1.0;
        self.frames.send_transform(transform).unwrap();
    }

    fn ask(&self, goal: LookupTransformGoal) -> (GoalStatus, LookupTransformResult) {
        let goal = self.client.send_goal(goal, TIMEOUT).unwrap();
        let result = goal.result(TIMEOUT).unwrap();
        (result.status, result.result)
    }
}

fn goal(target: &str, source: &str, timeout: Duration) -> LookupTransformGoal {
    let mut goal = LookupTransformGoal {
        target_frame: target.into(),
        source_frame: source.into(),
        ..LookupTransformGoal::default()
    };
    goal.timeout.sec = i32::try_from(timeout.as_secs()).unwrap();
    goal.timeout.nanosec = timeout.subsec_nanos();
    goal
}

const LONG: Duration = Duration::from_secs(600);

#[test]
fn a_goal_ends_when_its_transform_comes() {
    let fixture = Fixture::new();
    let waiting = fixture
        .client
        .send_goal(goal("map", "laser", LONG), TIMEOUT)
        .unwrap();
    fixture.publish("map", "base", 1.0);
    fixture.publish("base", "laser", 0.5);
    let result = waiting.result(TIMEOUT).unwrap();
    assert_eq!(result.status, GoalStatus::Succeeded);
    assert_eq!(result.result.transform.transform.translation.x, 1.5);
    // Known now: at once, the other way round as well.
    let (status, result) = fixture.ask(goal("laser", "map", Duration::ZERO));
    assert_eq!(status, GoalStatus::Succeeded);
    assert_eq!(result.transform.transform.translation.x, -1.5);
    let mut advanced = goal("map", "laser", LONG);
    advanced.advanced = true;
    advanced.fixed_frame = "base".into();
    let (_, result) = fixture.ask(advanced);
    assert_eq!(result.transform.transform.translation.x, 1.5);
}

#[test]
fn a_goal_without_transform_says_why_is_aborted_or_cancelled() {
    let fixture = Fixture::new();
    let (status, result) = fixture.ask(goal("map", "laser", Duration::ZERO));
    assert_eq!(status, GoalStatus::Succeeded);
    assert_eq!(result.error.error, TF2Error::LOOKUP_ERROR);
    let text = &result.error.error_string;
    assert!(text.contains("does not exist"), "{text}");
    fixture.publish("map", "base", 1.0);
    fixture.publish("odom", "laser", 1.0);
    let waiting = fixture.client.send_goal(goal("map", "base", LONG), TIMEOUT);
    waiting.unwrap().result(TIMEOUT).unwrap();
    let waiting = fixture
        .client
        .send_goal(goal("odom", "laser", LONG), TIMEOUT);
    waiting.unwrap().result(TIMEOUT).unwrap();
    let (_, result) = fixture.ask(goal("map", "laser", Duration::ZERO));
    assert_eq!(result.error.error, TF2Error::CONNECTIVITY_ERROR);
    let (status, _) = fixture.ask(goal("map", "laser", Duration::from_millis(30)));
    assert_eq!(status, GoalStatus::Aborted);
    let waiting = fixture
        .client
        .send_goal(goal("map", "laser", LONG), TIMEOUT)
        .unwrap();
    waiting.cancel(TIMEOUT).unwrap();
    let result = waiting.result(TIMEOUT).unwrap();
    assert_eq!(result.status, GoalStatus::Canceled);
}

#[test]
fn a_buffer_without_size_is_refused() {
    let line = ["--ros-args", "-p", "buffer_size:=-1.0"];
    let problem = try_start("tf2_ros", "buffer_server", &line).err();
    let problem = problem.expect("refused");
    assert!(problem.contains("buffer_size = -1"), "{problem}");
}
