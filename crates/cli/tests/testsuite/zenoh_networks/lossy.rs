//! A link with a delay of 300 ms each way that loses 20 % of all packets, TCP's as well.

use std::time::{Duration, Instant};

use crate::namespaces::{Lab, Program};
use crate::zenoh_networks::host::{Host, connected_to};
use crate::zenoh_networks::parts::relay;

/// TCP waits longer after each loss of one segment: some seconds after three.
const ON_SUCH_A_LINK: Duration = Duration::from_secs(180);
/// Numbers of each topic.
const NUMBERS: i64 = 500;

/// The numbers that an echo prints until the last one.
#[track_caller]
fn numbers(echo: &mut Program) -> Vec<i64> {
    let mut heard = Vec::new();
    echo.wait_for_line(ON_SUCH_A_LINK, |line| {
        heard.extend(line.parse::<i64>());
        heard.last() == Some(&NUMBERS)
    });
    heard
}

#[test]
fn a_link_with_loss_and_delay_delivers_everything_in_order() {
    let Some(lab) = Lab::new() else { return };
    let [a, b] = [(); 2].map(|()| Host::on_zenoh(&lab, ""));
    lab.attach(&a.namespace, 'a', 1, 1);
    let _relay = lab.attach_by(
        relay("200 300000 7 0 --lose-tcp"),
        (&b.namespace, 'b'),
        1,
        2,
    );
    let _routers = [a.router(""), b.router(&connected_to("10.1.0.1"))];
    let _server = a.start_part("server /a");
    let all: Vec<i64> = (1..=NUMBERS).collect();

    let keep_all = "--qos-reliability reliable --qos-history keep_all";
    let mut reliable = b.echo("/reliable", keep_all);
    let _batch = a.start_part(&format!("batch /reliable {NUMBERS}"));
    let begun = Instant::now();
    assert!(
        numbers(&mut reliable) == all,
        "each number, once and in order"
    );
    println!("{NUMBERS} reliable numbers: {:?}", begun.elapsed());

    let begun = Instant::now();
    let mut call = Program::start(b.call("/a/add", "--timeout 170"));
    let (code, out) = call.wait_for_end(ON_SUCH_A_LINK);
    let is_answered = code == Some(0) && out.contains(r#""sum":3"#);
    assert!(is_answered, "{out}{}", call.log());
    println!("a call: {:?}", begun.elapsed());

    let mut here = a.echo_latched("/latched");
    let _latched = a.start_part("latched /latched");
    numbers(&mut here);
    // The history, and what is published meanwhile.
    let begun = Instant::now();
    let mut late = b.echo_latched("/latched");
    assert!(
        numbers(&mut late) == all,
        "the whole history, once and in order"
    );
    println!("{NUMBERS} numbers of a history: {:?}", begun.elapsed());
}
