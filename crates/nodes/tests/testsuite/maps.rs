//! map_server: a map from files, published when active, and its services.

use pteros::ClientOptions;
use pteros::interfaces::lifecycle_msgs::msg::Transition;
use pteros::interfaces::lifecycle_msgs::srv::{ChangeState, ChangeStateRequest};
use pteros::interfaces::nav_msgs::msg::OccupancyGrid;
use pteros::interfaces::nav_msgs::srv::{GetMap, GetMapRequest, LoadMapResponse};
use pteros::msg::dynamic::{DynamicMessage, DynamicService};
use pteros::msg::schema::InterfaceKind;
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
    let client = started
        .test
        .create_client::<GetMap>("/map_server/map")
        .unwrap();
    assert!(client.wait_for_service(TIMEOUT));
    let answer = client.call(&GetMapRequest::default(), TIMEOUT).unwrap();
    assert!(answer.map.data.is_empty(), "it is not active");
    assert_eq!(load(&started, &folder.text("map.yaml")), UNDEFINED_FAILURE);
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
    let answer = client.call(&GetMapRequest::default(), TIMEOUT).unwrap();
    assert_eq!(answer.map, *map);
    folder.write("wrong.yaml", "image: 3");
    folder.write("blind.yaml", &MAP.replace("map.pgm", "none.pgm"));
    for (file, result) in [
        ("map.yaml", LoadMapResponse::RESULT_SUCCESS),
        ("none.yaml", LoadMapResponse::RESULT_INVALID_MAP_METADATA),
        ("wrong.yaml", LoadMapResponse::RESULT_INVALID_MAP_METADATA),
        ("blind.yaml", LoadMapResponse::RESULT_INVALID_MAP_DATA),
    ] {
        assert_eq!(load(&started, &folder.text(file)), result, "{file}");
    }
    let result = load(&started, "");
    assert_eq!(result, LoadMapResponse::RESULT_MAP_DOES_NOT_EXIST);
}

const UNDEFINED_FAILURE: u8 = LoadMapResponse::RESULT_UNDEFINED_FAILURE;

/// The result of Nav2's service, whose type is the standard one under another name.
fn load(started: &Started, url: &str) -> u8 {
    let mut library = pteros::interfaces::library().clone();
    let text = library.text("nav_msgs/srv/LoadMap").unwrap().to_owned();
    let name = "nav2_msgs/srv/LoadMap";
    library.insert_text("nav2_msgs", InterfaceKind::Service, "LoadMap", text, name);
    let ty = DynamicService::new(&library, name).unwrap();
    let options = ClientOptions::<DynamicService>::of_type(&ty, "/map_server/load_map");
    let client = started.test.create_client(options).unwrap();
    assert!(client.wait_for_service(TIMEOUT));
    let mut request = DynamicMessage::new(ty.request());
    request.set("map_url", url).unwrap();
    let answer = client.call(&request, TIMEOUT).unwrap();
    let result = answer
        .field("result")
        .and_then(|result| result.as_integer());
    u8::try_from(result.unwrap()).unwrap()
}

#[test]
fn a_missing_map_keeps_the_server_unconfigured() {
    let line = ["--ros-args", "-p", "yaml_filename:=/no/such/map.yaml"];
    let started = start("nav2_map_server", "map_server", &line);
    assert!(!change_state(&started, Transition::TRANSITION_CONFIGURE));
}
