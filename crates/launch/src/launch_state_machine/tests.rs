//! Launch state machine tests on simulated time.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::*;
use crate::error::SourceLocation;
use crate::plan::{OutputDestinations, ProcessOutput, RespawnPolicy, Shutdown};

fn location() -> SourceLocation {
    SourceLocation {
        file: Path::new("test.launch.xml").into(),
        line: 1,
        column: 1,
    }
}

fn process(name: &str) -> ProcessSpec {
    let to = OutputDestinations::default();
    ProcessSpec {
        name: name.into(),
        command: vec![name.into()],
        environment: BTreeMap::new(),
        working_folder: None,
        output: ProcessOutput {
            stdout: to,
            stderr: to,
        },
        respawn: None,
        emulate_tty: false,
        sigterm_timeout: seconds(5),
        sigkill_timeout: seconds(5),
        on_exit: Vec::new(),
        node: None,
        files: Vec::new(),
        location: location(),
    }
}

fn start(process: ProcessSpec) -> PlanStep {
    PlanStep::Start(Box::new(process))
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Executes all commands that are due at `now` and returns them without log lines.
/// Every start succeeds.
fn play(machine: &mut LaunchStateMachine, now: Duration) -> Vec<LaunchCommand> {
    let mut done = Vec::new();
    while let Some(command) = machine.poll(now) {
        match command {
            LaunchCommand::Log { .. } => continue,
            LaunchCommand::Start { task } => machine.handle_started(now, task, 100 + task as u32),
            _ => {}
        }
        done.push(command);
    }
    done
}

fn signals(task: usize, stop: StopSignal) -> LaunchCommand {
    LaunchCommand::Signal { task, stop }
}

#[test]
fn ctrl_c_interrupts_all_the_last_first_and_later_terminates_and_kills() {
    let steps = ["a", "b"].map(|name| start(process(name)));
    let mut machine = LaunchStateMachine::new(steps.into());
    play(&mut machine, seconds(0));
    machine.handle_signal(seconds(1), StopSignal::Interrupt);
    let interrupt = StopSignal::Interrupt;
    assert_eq!(
        play(&mut machine, seconds(1)),
        [signals(1, interrupt), signals(0, interrupt)]
    );
    machine.handle_exited(seconds(2), 1, ProcessExit::Code(0));
    assert_eq!(machine.next_timeout(), Some(seconds(6)));
    assert_eq!(
        play(&mut machine, seconds(6)),
        [signals(0, StopSignal::Terminate)]
    );
    assert_eq!(
        play(&mut machine, seconds(11)),
        [signals(0, StopSignal::Kill)]
    );
    machine.handle_exited(seconds(11), 0, ProcessExit::Signal(9));
    let sweep = LaunchCommand::CleanUpOrphans {
        stop: Some(StopSignal::Terminate),
    };
    assert_eq!(play(&mut machine, seconds(11)), [sweep]);
    machine.handle_orphans_counted(0);
    assert_eq!(play(&mut machine, seconds(11)), [LaunchCommand::Finish]);
    assert!(!machine.is_failed(), "we have ended it ourselves");
}

#[test]
fn the_status_line_counts_running_waiting_and_ended_processes() {
    let mut flaky = process("flaky");
    flaky.respawn = Some(RespawnPolicy {
        delay: seconds(5),
        retries_max: None,
    });
    let steps = vec![start(flaky), start(process("b")), start(process("c"))];
    let mut machine = LaunchStateMachine::new(steps);
    play(&mut machine, seconds(0));
    assert_eq!(machine.status(), "3 running");
    machine.handle_exited(seconds(1), 0, ProcessExit::Code(1));
    machine.handle_exited(seconds(1), 2, ProcessExit::Code(0));
    play(&mut machine, seconds(1));
    assert_eq!(
        machine.status(),
        "1 running, to be respawned: flaky, 1 ended"
    );
    machine.handle_signal(seconds(1), StopSignal::Interrupt);
    assert_eq!(machine.status(), "1 running, 2 ended; stopping b");
}

#[test]
fn a_second_ctrl_c_does_not_wait_and_a_third_kills() {
    let mut machine = LaunchStateMachine::new(vec![start(process("a"))]);
    play(&mut machine, seconds(0));
    for (at, stop) in [
        (1, StopSignal::Interrupt),
        (2, StopSignal::Terminate),
        (3, StopSignal::Kill),
    ] {
        machine.handle_signal(seconds(at), StopSignal::Interrupt);
        assert_eq!(play(&mut machine, seconds(at)), [signals(0, stop)]);
    }
}

#[test]
fn the_log_names_the_signal_that_arrived() {
    for (received, name) in [
        (
            StopSignal::Interrupt,
            "user interrupted with ctrl-c (SIGINT)",
        ),
        (StopSignal::Terminate, "received SIGTERM"),
    ] {
        let mut machine = LaunchStateMachine::new(vec![start(process("a"))]);
        play(&mut machine, seconds(0));
        for (at, next) in [(1, "ending"), (2, "sending SIGTERM to")] {
            machine.handle_signal(seconds(at), received);
            let expected = format!("{name}, {next} all processes");
            let mut said = false;
            while let Some(command) = machine.poll(seconds(at)) {
                let LaunchCommand::Log { text, .. } = command else {
                    continue;
                };
                said |= text == expected;
            }
            assert!(said, "{expected}");
        }
    }
}

#[test]
fn orphans_get_sigterm_and_two_seconds_later_sigkill() {
    let mut machine = LaunchStateMachine::new(vec![start(process("a"))]);
    play(&mut machine, seconds(0));
    machine.handle_exited(seconds(1), 0, ProcessExit::Code(0));
    let mut killed = None;
    let mut now = seconds(1);
    while !machine.commands.contains(&LaunchCommand::Finish) {
        let done = play(&mut machine, now);
        for command in done {
            let LaunchCommand::CleanUpOrphans { stop } = command else {
                assert_eq!(command, LaunchCommand::Finish);
                assert_eq!(now, seconds(5), "the kernel was given two seconds");
                assert_eq!(killed, Some(seconds(3)));
                return;
            };
            if stop == Some(StopSignal::Kill) {
                killed = Some(now);
            }
            machine.handle_orphans_counted(1);
        }
        now = machine.next_timeout().expect("a look or the end");
    }
}

#[test]
fn a_process_that_keeps_failing_waits_for_its_delay_or_for_longer_and_longer() {
    for (delay, expected) in [
        (500, [500, 500, 500, 500]),
        (40_000, [40_000; 4]),
        (0, [0, 100, 200, 400]),
    ] {
        check_respawns(millis(delay), expected.map(millis));
    }
}

fn check_respawns(delay: Duration, expected: [Duration; 4]) {
    let mut flaky = process("a");
    flaky.respawn = Some(RespawnPolicy {
        delay,
        retries_max: Some(4),
    });
    let mut machine = LaunchStateMachine::new(vec![start(flaky)]);
    play(&mut machine, seconds(0));
    let mut now = seconds(0);
    let mut pauses = Vec::new();
    for _ in 0..4 {
        machine.handle_exited(now, 0, ProcessExit::Code(1));
        let mut done = play(&mut machine, now);
        let next = machine.next_timeout().unwrap_or(now);
        pauses.push(next - now);
        now = next;
        done.extend(play(&mut machine, now));
        assert_eq!(done, [LaunchCommand::Start { task: 0 }]);
    }
    assert_eq!(pauses, expected);
    assert!(!machine.is_failed());
    machine.handle_exited(now, 0, ProcessExit::Code(1));
    play(&mut machine, now);
    assert!(machine.is_failed(), "four times is enough");
}

#[test]
fn a_process_that_ran_for_long_is_respawned_at_once() {
    let mut settled = process("a");
    settled.respawn = Some(RespawnPolicy {
        delay: Duration::ZERO,
        retries_max: None,
    });
    let mut machine = LaunchStateMachine::new(vec![start(settled)]);
    for now in [0, 100, 200] {
        assert_eq!(
            play(&mut machine, seconds(now)),
            [LaunchCommand::Start { task: 0 }]
        );
        machine.handle_exited(seconds(now + 100), 0, ProcessExit::Code(0));
    }
}

#[test]
fn ctrl_c_cancels_respawns_and_timers_and_nothing_starts_any_more() {
    let mut flaky = process("a");
    flaky.respawn = Some(RespawnPolicy {
        delay: seconds(5),
        retries_max: None,
    });
    let timer = LaunchTimer {
        period: seconds(2),
        clock: TimerClock::Steady,
        steps: vec![start(process("late"))],
        cancel_on_shutdown: true,
        location: location(),
    };
    let mut machine = LaunchStateMachine::new(vec![start(flaky), PlanStep::Timer(timer)]);
    play(&mut machine, seconds(0));
    machine.handle_exited(seconds(1), 0, ProcessExit::Code(1));
    play(&mut machine, seconds(1));
    machine.handle_signal(seconds(1), StopSignal::Interrupt);
    let done = play(&mut machine, seconds(1));
    assert!(matches!(
        done.as_slice(),
        [LaunchCommand::CleanUpOrphans { .. }]
    ));
    machine.handle_orphans_counted(0);
    assert_eq!(play(&mut machine, seconds(60)), [LaunchCommand::Finish]);
}

#[test]
fn a_process_with_on_exit_shutdown_stops_the_others() {
    let mut main = process("main");
    main.on_exit = vec![PlanStep::Shutdown(Shutdown {
        reason: "main has ended".into(),
        location: location(),
    })];
    let mut machine = LaunchStateMachine::new(vec![start(main), start(process("other"))]);
    play(&mut machine, seconds(0));
    machine.handle_exited(seconds(1), 0, ProcessExit::Code(3));
    assert_eq!(
        play(&mut machine, seconds(1)),
        [signals(1, StopSignal::Interrupt)]
    );
    assert!(machine.is_failed());
}

#[test]
fn a_timer_starts_what_it_holds_when_it_is_due() {
    let timer = LaunchTimer {
        period: seconds(2),
        clock: TimerClock::Steady,
        steps: vec![start(process("late"))],
        cancel_on_shutdown: true,
        location: location(),
    };
    let mut machine = LaunchStateMachine::new(vec![PlanStep::Timer(timer)]);
    assert_eq!(play(&mut machine, seconds(1)), []);
    assert_eq!(machine.next_timeout(), Some(seconds(2)));
    assert_eq!(
        play(&mut machine, seconds(2)),
        [LaunchCommand::Start { task: 0 }]
    );
}

#[test]
fn components_of_a_respawned_container_are_loaded_again() {
    let mut container = process("container-1");
    container.respawn = Some(RespawnPolicy {
        delay: seconds(1),
        retries_max: None,
    });
    let load = ComponentLoad {
        container: "/c".into(),
        process: Some("container-1".into()),
        components: Vec::new(),
        location: location(),
    };
    let mut machine = LaunchStateMachine::new(vec![start(container), PlanStep::Load(load)]);
    let load = LaunchCommand::Load { load: 0 };
    let begin = LaunchCommand::Start { task: 0 };
    assert_eq!(
        play(&mut machine, seconds(0)),
        [begin.clone(), load.clone()]
    );
    machine.handle_loaded(0, 0);
    machine.handle_exited(seconds(1), 0, ProcessExit::Signal(11));
    assert_eq!(play(&mut machine, seconds(1)), []);
    assert_eq!(play(&mut machine, seconds(2)), [begin, load]);
    machine.handle_signal(seconds(2), StopSignal::Interrupt);
    assert!(play(&mut machine, seconds(2)).contains(&LaunchCommand::CancelLoad { load: 0 }));
}
