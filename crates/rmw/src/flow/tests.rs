//! A controller alone, on fake time.

use super::*;

const PERIOD: u64 = 10_000_000;
const SECOND: u64 = 1_000_000_000;

fn place(key: u8, priority: i32) -> Place {
    Place {
        controller: 0,
        priority,
        writer: EntityId::new([0, 0, key], EntityId::KIND_WRITER_NO_KEY),
    }
}

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(7 * SECOND + nanos)
}

fn limited(bytes: u32) -> Flow {
    let controller = FlowController::new("test").bytes_per_period(bytes);
    Flow::new(&controller.period(Span::from_nanos(PERIOD)))
}

/// Lets writers that always have more send datagrams of these sizes for a
/// while; returns the bytes of each.
fn run(flow: &mut Flow, writers: &[(Place, u64)], from: u64, until: u64) -> Vec<u64> {
    let mut sent = vec![0; writers.len()];
    for (place, _) in writers {
        flow.enrol(place);
    }
    let mut now = at(from);
    while now < at(until) {
        while let Some(id) = flow.next(now) {
            let which = writers.iter().position(|(p, _)| p.writer == id).unwrap();
            let (place, bytes) = &writers[which];
            flow.charge(place, *bytes);
            sent[which] += bytes;
            flow.enrol(place);
        }
        let next = flow.next_turn(now).unwrap();
        assert!(next > now, "a turn that sends nothing and comes at once");
        now = next;
    }
    sent
}

#[test]
fn a_second_carries_the_bytes_of_a_second() {
    // Datagrams smaller than a period's bytes, about as large, larger.
    for bytes in [64, 1_400, 12_000, 63_000] {
        let mut flow = limited(12_500);
        let sent = run(&mut flow, &[(place(1, 0), bytes)], 0, SECOND);
        let wanted = 1_250_000;
        assert!(
            sent[0].abs_diff(wanted) <= wanted / 20,
            "{bytes}: {}",
            sent[0]
        );
    }
}

#[test]
fn a_late_driver_never_sends_more_than_was_allowed() {
    let mut flow = limited(10_000);
    let mut now = 0;
    let mut sent = 0;
    for turn in 0..200 {
        flow.enrol(&place(1, 0));
        while flow.next(at(now)).is_some() {
            flow.charge(&place(1, 0), 1_000);
            sent += 1_000;
            flow.enrol(&place(1, 0));
        }
        let next = flow.next_turn(at(now)).unwrap();
        // Sometimes a little late, sometimes by periods.
        now = next.as_nanos() - 7 * SECOND + (turn % 7) * PERIOD / 3;
    }
    assert!(sent <= (now / PERIOD + 1) * 10_000, "{sent} in {now} ns");
}

#[test]
fn resting_saves_up_nothing() {
    let mut flow = limited(10_000);
    run(&mut flow, &[(place(1, 0), 1_000)], 0, SECOND / 10);
    let sent = run(&mut flow, &[(place(1, 0), 1_000)], SECOND, SECOND + PERIOD);
    assert!(sent[0] <= 11_000, "{}", sent[0]);
}

#[test]
fn equals_share_by_bytes_not_by_datagrams() {
    let mut flow = limited(50_000);
    let writers = [
        (place(1, 0), 100),
        (place(2, 0), 10_000),
        (place(3, 0), 1_344),
    ];
    let sent = run(&mut flow, &writers, 0, SECOND);
    let share = sent.iter().sum::<u64>() / 3;
    for bytes in sent {
        assert!(bytes.abs_diff(share) <= share / 50, "{bytes} of {share}");
    }
}

#[test]
fn who_comes_late_has_no_claim_on_the_past() {
    let mut flow = limited(50_000);
    let (early, late) = ((place(1, 0), 1_000), (place(2, 0), 1_000));
    run(&mut flow, &[early], 0, SECOND);
    let sent = run(&mut flow, &[early, late], SECOND, 2 * SECOND);
    assert!(sent[0].abs_diff(sent[1]) <= 2_000, "{sent:?}");
}

#[test]
fn the_urgent_goes_first_and_leaves_the_rest() {
    let mut flow = limited(50_000);
    let (bulk, urgent) = (place(1, 0), place(2, 5));
    flow.enrol(&bulk);
    flow.enrol(&urgent);
    assert_eq!(flow.next(at(0)), Some(urgent.writer));
    assert_eq!(flow.next(at(0)), Some(bulk.writer));
    assert_eq!(flow.next(at(0)), None);
    // Both always have more: strictly by rank.
    let sent = run(&mut flow, &[(bulk, 1_000), (urgent, 1_000)], 0, SECOND);
    assert_eq!(sent[0], 0);
}

#[test]
fn nobody_waits_nobody_is_woken() {
    let mut flow = limited(1_000);
    let one = place(1, 0);
    assert_eq!(flow.next_turn(at(0)), None);
    flow.enrol(&one);
    assert_eq!(flow.next_turn(at(0)), Some(at(0)));
    assert_eq!(flow.next(at(0)), Some(one.writer));
    flow.charge(&one, 3_500);
    assert_eq!(flow.next_turn(at(0)), None);
    flow.enrol(&one);
    // 2,500 bytes too many: three periods later one byte may go again.
    assert_eq!(flow.next_turn(at(0)), Some(at(3 * PERIOD)));
    assert_eq!(flow.next(at(3 * PERIOD - 1)), None);
    assert_eq!(flow.next(at(3 * PERIOD)), Some(one.writer));
    flow.enrol(&one);
    flow.leave(one.writer);
    assert_eq!(flow.next_turn(at(3 * PERIOD)), None);
}

#[test]
fn without_a_limit_everybody_goes_at_once() {
    let mut flow = Flow::new(&FlowController::new("free"));
    for _ in 0..1_000 {
        flow.enrol(&place(1, 0));
        assert!(flow.next(at(0)).is_some());
        flow.charge(&place(1, 0), 1 << 30);
    }
}

#[test]
fn controllers_that_cannot_be_are_named() {
    let one = || FlowController::new("a");
    let told = |all: &[FlowController]| FlowController::validate(all).unwrap_err().to_string();
    assert!(FlowController::validate(&[one(), FlowController::new("b")]).is_ok());
    assert!(told(&[one(), one()]).contains("\"a\""));
    assert!(told(&[one().bytes_per_period(0)]).contains("\"a\": 0 bytes"));
    assert!(told(&[one().period(Span::from_nanos(5))]).contains("5ns"));
    assert!(told(&[FlowController::new("")]).contains("no name"));
    let many: Vec<_> = (0..65)
        .map(|n| FlowController::new(format!("{n}")))
        .collect();
    assert!(told(&many).contains("65"));
}
