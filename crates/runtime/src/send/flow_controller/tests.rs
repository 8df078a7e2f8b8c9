//! One flow controller on simulated time.

use super::*;

const PERIOD: u64 = 10_000_000;
const SECOND: u64 = 1_000_000_000;

fn membership(key: u8, priority: i32) -> FlowMembership {
    FlowMembership {
        controller: 0,
        priority,
        writer: EntityId::new([0, 0, key], EntityId::KIND_WRITER_NO_KEY),
    }
}

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(7 * SECOND + nanos)
}

fn limited(bytes: u32) -> FlowState {
    let controller = FlowController::new("test").bytes_per_period(bytes);
    FlowState::new(&controller.period(Span::from_nanos(PERIOD)))
}

/// Lets writers with endless data send datagrams of these sizes for a while.
/// Returns the bytes of each.
fn run(flow: &mut FlowState, writers: &[(FlowMembership, u64)], from: u64, until: u64) -> Vec<u64> {
    let mut sent = vec![0; writers.len()];
    for (membership, _) in writers {
        flow.enqueue(membership);
    }
    let mut now = at(from);
    while now < at(until) {
        while let Some(id) = flow.next(now) {
            let which = writers.iter().position(|(p, _)| p.writer == id).unwrap();
            let (membership, bytes) = &writers[which];
            flow.charge(membership, *bytes);
            sent[which] += bytes;
            flow.enqueue(membership);
        }
        let next = flow.next_send_at(now).unwrap();
        assert!(next > now, "a turn that sends nothing and comes at once");
        now = next;
    }
    sent
}

#[test]
fn one_second_carries_the_bytes_of_the_rate_limit() {
    // Datagrams smaller than a period's bytes, about as large, larger.
    for bytes in [64, 1_400, 12_000, 63_000] {
        let mut flow = limited(12_500);
        let sent = run(&mut flow, &[(membership(1, 0), bytes)], 0, SECOND);
        let wanted = 1_250_000;
        assert!(
            sent[0].abs_diff(wanted) <= wanted / 20,
            "{bytes}: {}",
            sent[0]
        );
    }
}

#[test]
fn a_late_driver_never_exceeds_the_allowance() {
    let mut flow = limited(10_000);
    let mut now = 0;
    let mut sent = 0;
    for step in 0..200 {
        flow.enqueue(&membership(1, 0));
        while flow.next(at(now)).is_some() {
            flow.charge(&membership(1, 0), 1_000);
            sent += 1_000;
            flow.enqueue(&membership(1, 0));
        }
        let next = flow.next_send_at(at(now)).unwrap();
        // Sometimes a little late, sometimes by periods.
        now = next.as_nanos() - 7 * SECOND + (step % 7) * PERIOD / 3;
    }
    assert!(sent <= (now / PERIOD + 1) * 10_000, "{sent} in {now} ns");
}

#[test]
fn idle_time_saves_no_allowance() {
    let mut flow = limited(10_000);
    run(&mut flow, &[(membership(1, 0), 1_000)], 0, SECOND / 10);
    let sent = run(
        &mut flow,
        &[(membership(1, 0), 1_000)],
        SECOND,
        SECOND + PERIOD,
    );
    assert!(sent[0] <= 11_000, "{}", sent[0]);
}

#[test]
fn writers_of_equal_priority_share_bytes_not_datagrams() {
    let mut flow = limited(50_000);
    let writers = [
        (membership(1, 0), 100),
        (membership(2, 0), 10_000),
        (membership(3, 0), 1_344),
    ];
    let sent = run(&mut flow, &writers, 0, SECOND);
    let share = sent.iter().sum::<u64>() / 3;
    for bytes in sent {
        assert!(bytes.abs_diff(share) <= share / 50, "{bytes} of {share}");
    }
}

#[test]
fn a_late_writer_gets_no_credit_for_the_past() {
    let mut flow = limited(50_000);
    let (early, late) = ((membership(1, 0), 1_000), (membership(2, 0), 1_000));
    run(&mut flow, &[early], 0, SECOND);
    let sent = run(&mut flow, &[early, late], SECOND, 2 * SECOND);
    assert!(sent[0].abs_diff(sent[1]) <= 2_000, "{sent:?}");
}

#[test]
fn the_highest_priority_goes_first_and_leaves_the_rest() {
    let mut flow = limited(50_000);
    let (bulk, urgent) = (membership(1, 0), membership(2, 5));
    flow.enqueue(&bulk);
    flow.enqueue(&urgent);
    assert_eq!(flow.next(at(0)), Some(urgent.writer));
    assert_eq!(flow.next(at(0)), Some(bulk.writer));
    assert_eq!(flow.next(at(0)), None);
    // Both always have more: strictly by priority.
    let sent = run(&mut flow, &[(bulk, 1_000), (urgent, 1_000)], 0, SECOND);
    assert_eq!(sent[0], 0);
}

#[test]
fn without_waiting_writers_there_is_no_timeout() {
    let mut flow = limited(1_000);
    let one = membership(1, 0);
    assert_eq!(flow.next_send_at(at(0)), None);
    flow.enqueue(&one);
    assert_eq!(flow.next_send_at(at(0)), Some(at(0)));
    assert_eq!(flow.next(at(0)), Some(one.writer));
    flow.charge(&one, 3_500);
    assert_eq!(flow.next_send_at(at(0)), None);
    flow.enqueue(&one);
    // 2,500 bytes too many: three periods later one byte may be sent again.
    assert_eq!(flow.next_send_at(at(0)), Some(at(3 * PERIOD)));
    assert_eq!(flow.next(at(3 * PERIOD - 1)), None);
    assert_eq!(flow.next(at(3 * PERIOD)), Some(one.writer));
    flow.enqueue(&one);
    flow.remove(one.writer);
    assert_eq!(flow.next_send_at(at(3 * PERIOD)), None);
}

#[test]
fn without_a_limit_every_writer_sends_at_once() {
    let mut flow = FlowState::new(&FlowController::new("free"));
    for _ in 0..1_000 {
        flow.enqueue(&membership(1, 0));
        assert!(flow.next(at(0)).is_some());
        flow.charge(&membership(1, 0), 1 << 30);
    }
}

#[test]
fn invalid_controllers_are_errors_with_their_name() {
    let one = || FlowController::new("a");
    let error_text =
        |all: &[FlowController]| FlowController::validate(all).unwrap_err().to_string();
    assert!(FlowController::validate(&[one(), FlowController::new("b")]).is_ok());
    assert!(error_text(&[one(), one()]).contains("\"a\""));
    assert!(error_text(&[one().bytes_per_period(0)]).contains("\"a\": 0 bytes"));
    assert!(error_text(&[one().period(Span::from_nanos(5))]).contains("5ns"));
    assert!(FlowController::validate(&[one().period(FLOW_PERIOD_MIN)]).is_ok());
    assert!(error_text(&[one().period(FLOW_PERIOD_MIN - Span::from_nanos(1))]).contains("99.999"));
    assert!(error_text(&[FlowController::new("")]).contains("no name"));
    let many: Vec<_> = (0..65)
        .map(|n| FlowController::new(format!("{n}")))
        .collect();
    assert!(error_text(&many).contains("65"));
}
