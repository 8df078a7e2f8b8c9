//! Two hosts communicate at the rate of their link, with the kernel's shaper and
//! with the frame relay.
//!
//! It has its own main, because it is also the relay and the process inside the
//! private network. Without network namespaces it prints that and checks nothing.

#![allow(clippy::disallowed_methods, reason = "a real cable has a real rate")]

use std::fs::File;
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use pteros_lab::testbed::{EmulatedLink, TwoHosts, frame_relay, hosts, network};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

const INSIDE: &str = "two-hosts-inside";
/// As many as every socket's default buffer holds. Datagrams that arrive while this
/// process waits for a CPU are not lost on the link.
const DATAGRAMS: usize = 60;
const DATAGRAM_BYTES: usize = 1_400;
/// Headers of Ethernet, IP and UDP.
const HEADER_BYTES: usize = 42;
const TIMEOUT: Duration = Duration::from_secs(20);

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let rest = words.get(1..).unwrap_or_default();
    match words.first().map(String::as_str) {
        Some(frame_relay::TASK) => frame_relay::run(rest).expect("carried"),
        Some(network::INSIDE_TASK) => {
            network::run_inside(rest).expect("a private network");
        }
        Some(INSIDE) => inside(),
        _ => outside(),
    }
}

fn outside() {
    if let Err(why) = network::available() {
        println!("two hosts: not looked at: {why}");
        return;
    }
    let own = std::env::current_exe().expect("its own path");
    let own = own.to_string_lossy().into_owned();
    let status = network::command(true, &own).expect("available");
    let status = { status }.arg(INSIDE).status().expect("run");
    assert!(status.success(), "{status}");
}

/// In a private network: one link after the other.
fn inside() {
    let shaped = EmulatedLink::FAST_ETHERNET;
    let delayed = EmulatedLink {
        delay_us: 2_000,
        ..shaped
    };
    let lossy = EmulatedLink {
        bits_per_second: 0,
        loss_per_mille: 300,
        loses_tcp: false,
        seed: 7,
        ..delayed
    };
    for (link, all, carrier) in [
        (shaped, true, "tbf"),
        (delayed, true, "relay"),
        (lossy, false, "relay"),
    ] {
        let hosts = TwoHosts::join(link).expect("joined");
        // Without tbf in the kernel both links use the relay.
        let about = hosts.about().to_owned();
        assert!(
            about.contains(carrier) || about.contains("relay"),
            "{about}"
        );
        let (received, first, took) = carry();
        println!(
            "two hosts: {about}: {received} of {DATAGRAMS} in {took:?}, the first after {first:?}"
        );
        assert!(
            first >= Duration::from_micros(u64::from(link.delay_us)),
            "{first:?}"
        );
        if all {
            assert_eq!(received, DATAGRAMS)
        } else {
            assert!((20..58).contains(&received), "{received}")
        }
        if link.bits_per_second > 0 {
            // Ten frames may come as a burst.
            let bytes = (DATAGRAMS - 11) * (DATAGRAM_BYTES + HEADER_BYTES);
            let least = bytes as f64 * 8.0 / link.bits_per_second as f64;
            assert!(took.as_secs_f64() >= least, "{took:?} for {bytes} bytes");
        }
    }
}

/// Sends datagrams from left to right. Returns their number, and when the first and
/// the last arrived.
fn carry() -> (usize, Duration, Duration) {
    let to = socket_on(hosts::NAMES[1], "10.77.0.2:7000");
    let from = socket_on(hosts::NAMES[0], "10.77.0.1:7000");
    // Until address resolution is done. These datagrams do not count.
    to.set_read_timeout(Some(Duration::from_millis(100)))
        .expect("a timeout");
    let begin = Instant::now();
    let mut buffer = [0; 2_000];
    loop {
        from.send_to(b"hello", "10.77.0.2:7000").expect("sent");
        if to.recv(&mut buffer).is_ok() {
            break;
        }
        assert!(begin.elapsed() < TIMEOUT, "nothing comes through");
    }
    while to.recv(&mut buffer).is_ok() {}
    let begin = Instant::now();
    let sender = std::thread::spawn(move || {
        let payload = [1; DATAGRAM_BYTES];
        for _ in 0..DATAGRAMS {
            from.send_to(&payload, "10.77.0.2:7000").expect("sent");
        }
    });
    to.set_read_timeout(Some(Duration::from_secs(2)))
        .expect("a timeout");
    let (mut received, mut first, mut last) = (0, Duration::ZERO, Duration::ZERO);
    while to
        .recv(&mut buffer)
        .is_ok_and(|bytes| bytes == DATAGRAM_BYTES)
    {
        last = begin.elapsed();
        if received == 0 {
            first = last;
        }
        received += 1;
        if received == DATAGRAMS {
            break;
        }
    }
    sender.join().expect("sent");
    (received, first, last)
}

/// A socket in one of the hosts. The opening thread enters the namespace.
fn socket_on(host: &'static str, address: &'static str) -> UdpSocket {
    let opened = std::thread::spawn(move || {
        let network = File::open(format!("/run/netns/{host}")).expect("the host");
        let kind = Some(LinkNameSpaceType::Network);
        move_into_link_name_space(network.as_fd(), kind).expect("entered");
        UdpSocket::bind(address).expect("a socket")
    });
    opened.join().expect("opened")
}
