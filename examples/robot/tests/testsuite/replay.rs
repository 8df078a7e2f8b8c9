//! Deterministic replay: the planner's plans are the same in each run, bit by bit.
//!
//! The bag has the map, the request that activates the planner, and requests for plans.
//! `pteros bag play --step-with /planner` does what this test does with the library.
#![allow(clippy::disallowed_methods, reason = "a test has a deadline")]

use pteros_test_support::folder::Folder;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pteros::SubscriptionOptions;
use pteros::interfaces::nav_msgs::msg::OccupancyGrid;
use pteros::msg::dynamic::{DynamicMessage, DynamicService, DynamicType};
use pteros::msg::library::InterfaceLibrary;
use pteros::prelude::*;
use pteros::subscription::{SerializedMessage, SerializedType};
use pteros_bag::definitions::definition_text;
use pteros_bag::{
    BagOptions, BagReader, BagTopic, BagWriter, ClockOptions, Player, PlayerOptions, RequestSource,
    StepOptions,
};

const TIMEOUT: Duration = Duration::from_secs(60);
const START: u64 = 1_000_000_000_000;
/// Times between the messages: some come at once, some after a second.
const STEPS: [u64; 7] = [0, 1, 1_000_000, 5_000, 250_000_000, 0, 1_000_000_000];

/// The planner's process; killed when dropped.
struct Planner(Child);

impl Planner {
    fn start(domain: u32) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_robot"));
        command
            .env("ROS_DOMAIN_ID", domain.to_string())
            .env("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
            .args(["planner", "--ros-args", "-p", "use_sim_time:=true"]);
        Self(command.spawn().unwrap())
    }
}

impl Drop for Planner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn payload(ty: &DynamicType, yaml: &str) -> Vec<u8> {
    let message = DynamicMessage::from_yaml(ty, yaml).unwrap();
    message.to_payload(Default::default())
}

/// A topic with the events of a service.
fn events(library: &InterfaceLibrary, service: &str, ty: &DynamicService) -> BagTopic {
    let described = ty.event().unwrap().description();
    BagTopic {
        name: format!("{service}/_service_event"),
        type_name: format!("{}_Event", ty.name()),
        definition: definition_text(&described, library),
        serialization_format: "cdr".into(),
        ..BagTopic::default()
    }
}

/// A hall of 8 by 4 metres with a wall that has a door at its end.
fn floor() -> OccupancyGrid {
    let (width, height) = (80, 40);
    let mut floor = OccupancyGrid::default();
    floor.header.frame_id = "map".into();
    floor.info.resolution = 0.1;
    floor.info.width = width;
    floor.info.height = height;
    floor.info.origin.orientation.w = 1.0;
    let cells = (0..width * height).map(|cell| (cell % width, cell / width));
    floor.data = cells
        .map(|(x, y)| {
            let is_border = x == 0 || y == 0 || x == width - 1 || y == height - 1;
            let is_wall = x == 40 && y < 25;
            if is_border || is_wall { 100 } else { 0 }
        })
        .collect();
    floor
}

fn write_bag(folder: &Path) {
    let library = pteros::interfaces::library();
    let mut writer = BagWriter::create(folder, BagOptions::default()).unwrap();
    let grid = library.describe("nav_msgs/msg/OccupancyGrid").unwrap();
    let map = writer
        .add_topic(BagTopic {
            name: "/map".into(),
            type_name: "nav_msgs/msg/OccupancyGrid".into(),
            definition: definition_text(&grid, library),
            serialization_format: "cdr".into(),
            offered_qos: vec![QosProfile::default().keep_last(1).transient_local()],
            ..BagTopic::default()
        })
        .unwrap();
    let change = DynamicService::new(library, "lifecycle_msgs/srv/ChangeState").unwrap();
    let states = events(library, "/planner/change_state", &change);
    let states = writer.add_topic(states).unwrap();
    let plan = DynamicService::new(library, "nav_msgs/srv/GetPlan").unwrap();
    let plans = writer
        .add_topic(events(library, "/get_plan", &plan))
        .unwrap();

    let floor = floor();
    let grid = DynamicType::new(&grid).unwrap();
    let floor = DynamicMessage::from_message(&grid, &floor).unwrap();
    let floor = floor.to_payload(Default::default());
    writer.write(map, START, START, &floor).unwrap();

    let transition = |id: u8| {
        let yaml = format!("{{info: {{event_type: 1}}, request: [{{transition: {{id: {id}}}}}]}}");
        payload(change.event().unwrap(), &yaml)
    };
    // Configure, which subscribes to the latched map, and activate.
    for (id, at) in [(1, START + 10), (3, START + 1000)] {
        writer.write(states, at, at, &transition(id)).unwrap();
    }
    let mut at = START + 2000;
    for (number, step) in (0..).zip(STEPS) {
        at += step;
        let y = 1.0 + 0.1 * f64::from(number);
        let yaml = format!(
            "{{info: {{event_type: 1}}, request: [{{start: {{header: {{frame_id: map}}, pose: {{position: {{x: 1.0, y: {y}}}}}}}, goal: {{header: {{frame_id: map}}, pose: {{position: {{x: 6.5, y: 1.0}}}}}}}}]}}"
        );
        let event = payload(plan.event().unwrap(), &yaml);
        writer.write(plans, at, at, &event).unwrap();
        // The same request as its client saw it is not sent again.
        let sent = yaml.replace("event_type: 1", "event_type: 0");
        let event = payload(plan.event().unwrap(), &sent);
        writer.write(plans, at, at, &event).unwrap();
    }
    writer.finish(&Default::default()).unwrap();
}

/// Replays the bag to a new planner, and returns its plans as they were published.
fn replay(folder: &Path, domain: u32) -> Vec<Vec<u8>> {
    let _planner = Planner::start(domain);
    let context = Context::with_options(ContextOptions::local(domain)).unwrap();
    let node = context.create_node("replay").unwrap();
    let executor = SingleThreadedExecutor::new(&context);
    executor.add_node(&node).unwrap();
    let plans = Arc::<Mutex<Vec<Vec<u8>>>>::default();
    let seen = plans.clone();
    let ty = SerializedType::new("nav_msgs/msg/Path", None);
    let options = SubscriptionOptions::of_type(&ty, "/plan".keep_last(100));
    let _subscription = node
        .create_subscription::<SerializedMessage>(options, move |plan| {
            seen.lock().unwrap().push(plan.to_vec());
        })
        .unwrap();
    let options = PlayerOptions {
        clock: ClockOptions {
            all_topics: true,
            ..ClockOptions::default()
        },
        requests: Some(RequestSource::Service),
        step: Some(StepOptions {
            nodes: vec!["/planner".into()],
            timeout: TIMEOUT,
        }),
        ..PlayerOptions::default()
    };
    let player = Player::start(&node, BagReader::open(folder).unwrap(), options).unwrap();
    let end = Instant::now() + TIMEOUT;
    let count = || plans.lock().unwrap().len();
    while (player.summary().is_none() || count() < STEPS.len()) && Instant::now() < end {
        executor.spin_once(Duration::from_millis(20));
    }
    let summary = player.summary().expect("the bag ends in time");
    assert_eq!(summary.failed, 0, "{:?}", summary.problems);
    assert_eq!(summary.published, 3 + STEPS.len() as u64);
    let plans = plans.lock().unwrap();
    plans.clone()
}

#[test]
fn the_planners_plans_are_the_same_bits_in_ten_runs() {
    let folder = Folder::absent("replay");
    write_bag(&folder);
    let domain = |run: u32| 30 + (std::process::id() * 3 + 20 + run) % 70;
    let first = replay(&folder, domain(0));
    assert_eq!(first.len(), STEPS.len());
    // The stamp of each plan is the time of its request in the bag, as /clock said it.
    let stamp = |plan: &[u8]| {
        let word = |at: usize| u32::from_le_bytes(plan[at..at + 4].try_into().unwrap());
        u64::from(word(4)) * 1_000_000_000 + u64::from(word(8))
    };
    let mut at = START + 2000;
    for (plan, step) in first.iter().zip(STEPS) {
        at += step;
        assert_eq!(stamp(plan), at);
    }
    for run in 1..10 {
        assert_eq!(replay(&folder, domain(run)), first, "run {run}");
    }
}
