//! Who gets an answer, and who gets data.

use std::io::{Read, Write};
use std::time::Instant;

use tungstenite::Message;

use crate::viewer::{PATIENCE, Robot, Viewer, wait_until};

/// Reads until the connection has ended.
fn wait_for_end(viewer: &mut Viewer) {
    let end = Instant::now() + PATIENCE;
    while !matches!(viewer.socket.read(), Ok(Message::Close(_)) | Err(_)) {
        assert!(Instant::now() < end, "the connection goes on");
    }
}

fn upgrade(robot: &Robot, token: &str, headers: &str) -> String {
    let host = robot.view.address();
    robot.ask(&format!(
        "GET /?token={token} HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{headers}\r\n"
    ))
}

/// As [`upgrade`], of a request that is accepted: the first line and headers.
fn accepted(robot: &Robot, headers: &str) -> String {
    let (host, token) = (robot.view.address(), robot.view.token());
    let mut stream = robot.socket();
    let request = format!(
        "GET /?token={token} HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{headers}\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        answer.push(byte[0]);
    }
    String::from_utf8(answer).unwrap()
}

const SDK: &str = "Sec-WebSocket-Protocol: foxglove.sdk.v1\r\n";

#[test]
fn the_page_is_served_without_a_token_and_nothing_else_is() {
    let robot = Robot::start(|_| {});
    for path in ["/", "/index.html", "/?token=x"] {
        let answer = robot.ask(&format!("GET {path} HTTP/1.1\r\n\r\n"));
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(
            answer.contains("Content-Security-Policy: default-src 'self';"),
            "{answer}"
        );
        assert!(answer.contains("<!doctype html>"), "{answer}");
    }
    let head = robot.ask("HEAD / HTTP/1.1\r\n\r\n");
    assert!(
        head.starts_with("HTTP/1.1 200 OK") && !head.contains("<!doctype"),
        "{head}"
    );
    for path in [
        "/nothing",
        "/../Cargo.toml",
        "/..%2fCargo.toml",
        "//etc/passwd",
    ] {
        let answer = robot.ask(&format!("GET {path} HTTP/1.1\r\n\r\n"));
        assert!(answer.starts_with("HTTP/1.1 404"), "{path}: {answer}");
    }
    let post = robot.ask("POST / HTTP/1.1\r\n\r\n");
    assert!(post.starts_with("HTTP/1.1 405"), "{post}");
    let large = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(9000));
    let large = robot.ask(&large);
    assert!(large.starts_with("HTTP/1.1 431"), "{large}");
}

#[test]
fn a_viewer_without_the_token_is_refused() {
    let robot = Robot::start(|_| {});
    let token = robot.view.token().to_owned();
    for wrong in ["", "x", &token[1..], &format!("{token}0"), &"0".repeat(32)] {
        let answer = upgrade(&robot, wrong, SDK);
        assert!(answer.starts_with("HTTP/1.1 401"), "{wrong}: {answer}");
    }
    assert_eq!(robot.view.counts().viewers, 0);
    assert!(accepted(&robot, SDK).starts_with("HTTP/1.1 101"));
}

#[test]
fn a_page_of_another_site_is_refused() {
    let robot = Robot::start(|options| options.origins = vec!["https://viewer.example".into()]);
    let token = robot.view.token().to_owned();
    let address = robot.view.address();
    let origin = |origin: &str| format!("{SDK}Origin: {origin}\r\n");
    let others = [
        "http://evil.example",
        "null",
        "http://127.0.0.1:1",
        "http://",
    ];
    for other in others {
        let answer = upgrade(&robot, &token, &origin(other));
        assert!(answer.starts_with("HTTP/1.1 403"), "{other}: {answer}");
    }
    for own in [format!("http://{address}"), "https://viewer.example".into()] {
        let answer = accepted(&robot, &origin(&own));
        assert!(answer.starts_with("HTTP/1.1 101"), "{own}: {answer}");
    }
}

#[test]
fn both_names_of_the_subprotocol_are_accepted_and_others_refused() {
    let robot = Robot::start(|_| {});
    let token = robot.view.token().to_owned();
    for none in ["", "Sec-WebSocket-Protocol: mqtt\r\n"] {
        let answer = upgrade(&robot, &token, none);
        assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
        assert!(answer.contains("offer the subprotocol"), "{answer}");
    }
    for name in ["foxglove.sdk.v1", "foxglove.websocket.v1"] {
        let answer = accepted(&robot, &format!("Sec-WebSocket-Protocol: x, {name}\r\n"));
        assert!(
            answer.contains(&format!("\r\nSec-WebSocket-Protocol: {name}\r\n")),
            "{answer}"
        );
        // The example of RFC 6455 §1.3.
        let accept = "\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n";
        assert!(answer.contains(accept), "{answer}");
    }
}

#[test]
fn connections_above_the_limit_are_refused_and_counted() {
    let robot = Robot::start(|_| {});
    let held: Vec<_> = (0..64).map(|_| robot.socket()).collect();
    wait_until(|| robot.view.counts().connections == 64, "64 connections");
    let answer = robot.ask("GET / HTTP/1.1\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert_eq!(robot.view.counts().refused, 1);
    drop(held);
    wait_until(|| robot.view.counts().connections == 0, "all have gone");
    assert!(
        robot
            .ask("GET / HTTP/1.1\r\n\r\n")
            .starts_with("HTTP/1.1 200")
    );
}

#[test]
fn a_request_that_is_never_complete_is_cut_off() {
    let robot = Robot::start(|_| {});
    let mut stream = robot.socket();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: ").unwrap();
    let begun = Instant::now();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    assert!(
        rest.is_empty() && begun.elapsed() < PATIENCE,
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn an_oversized_message_ends_the_connection() {
    let robot = Robot::start(|_| {});
    let mut viewer = robot.viewer();
    // The server may close before it has read everything.
    let _ = viewer.socket.send(Message::binary(vec![0; 300 << 10]));
    wait_for_end(&mut viewer);
    wait_until(|| robot.view.counts().viewers == 0, "the viewer has gone");
}

#[test]
fn dropping_the_server_ends_all_connections() {
    let robot = Robot::start(|_| {});
    let (mut viewer, _waiting) = (robot.viewer(), robot.socket());
    let Robot { view, .. } = robot;
    drop(view);
    wait_for_end(&mut viewer);
}
