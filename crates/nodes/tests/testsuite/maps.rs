//! map_server: a map from files, published when active, and its services.

use pteros::interfaces::lifecycle_msgs::msg::Transition;
use pteros::interfaces::lifecycle_msgs::srv::{ChangeState, ChangeStateRequest};
use pteros::interfaces::nav_msgs::msg::OccupancyGrid;
use pteros::interfaces::nav_msgs::srv::{GetMap, GetMapRequest};
use pteros::prelude::*;
use pteros_test_support::folder::Folder;

use crate::{Started, TIMEOUT, start};

const MAP: &str = "image: map.pgm
resolution: 0.05
origin: [-1.0, 2.0, 1.0]
negate: 0
occupied_thresh: 0.65
free_thresh: 0.25
";

fn change_state(started: &Started, id: u8) -> bool {
    let client = started
        .test
        .create_client::<ChangeState>("/map_server/change_state")
        .unwrap();
    assert!(client.wait_for_service(TIMEOUT));
    let mut request = ChangeStateRequest::default();
    request.transition.id = id;
    client.call(&request, TIMEOUT).unwrap().success
}

#[test]
fn an_active_server_publishes_its_map_and_answers_for_it() {
    let folder = Folder::new("maps");
    folder.write("map.pgm", b"P5\n2 2\n255\n\x00\xff\x80\xff");
    let file = folder.write("map.yaml", MAP).display().to_string();
    let file = format!("yaml_filename:={file}");
    let started = start(
        "nav2_map_server",
        "map_server",
        &["--ros-args", "-p", &file],
    );
    assert!(change_state(&started, Transition::TRANSITION_CONFIGURE));
    assert!(change_state(&started, Transition::TRANSITION_ACTIVATE));
    let topic = "/map".keep_last(1).transient_local();
    let map = started
        .test
        .wait_for_message::<OccupancyGrid>(topic, TIMEOUT)
        .unwrap();
    let map = map.expect("a late joiner gets it");
    assert_eq!((map.info.width, map.info.height), (2, 2));
    assert_eq!(map.data, [-1, 0, 100, 0], "from the bottom");
    assert_eq!(
        (map.info.resolution, map.header.frame_id.as_str()),
        (0.05, "map")
    );
    assert!((map.info.origin.orientation.z - 0.5f64.sin()).abs() < 1e-15);
    let client = started
        .test
        .create_client::<GetMap>("/map_server/map")
        .unwrap();
    assert!(client.wait_for_service(TIMEOUT));
    let answer = client.call(&GetMapRequest::default(), TIMEOUT).unwrap();
    assert_eq!(answer.map, *map);
}

#[test]
fn a_missing_map_keeps_the_server_unconfigured() {
    let line = ["--ros-args", "-p", "yaml_filename:=/no/such/map.yaml"];
    let started = start("nav2_map_server", "map_server", &line);
    assert!(!change_state(&started, Transition::TRANSITION_CONFIGURE));
}
