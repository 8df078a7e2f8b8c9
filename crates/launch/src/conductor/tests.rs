//! Launches on fake time.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::*;
use crate::fault::Place;
use crate::plan::{Destinations, Output, Respawn, Shutdown};

fn place() -> Place {
    Place {
        file: Path::new("test.launch.xml").into(),
        line: 1,
        column: 1,
    }
}

fn process(name: &str) -> Process {
    let to = Destinations::default();
    Process {
        name: name.into(),
        words: vec![name.into()],
        environment: BTreeMap::new(),
        folder: None,
        output: Output {
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
        place: place(),
    }
}

fn start(process: Process) -> Step {
    Step::Start(Box::new(process))
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// What is done at a moment, without what is said. Starts succeed.
fn play(conductor: &mut Conductor, now: Duration) -> Vec<Command> {
    let mut done = Vec::new();
    while let Some(command) = conductor.poll(now) {
        match command {
            Command::Say { .. } => continue,
            Command::Start { task } => conductor.handle_started(now, task, 100 + task as u32),
            _ => {}
        }
        done.push(command);
    }
    done
}

fn signals(task: usize, stop: Stop) -> Command {
    Command::Signal { task, stop }
}

#[test]
fn ctrl_c_interrupts_all_the_last_first_and_later_terminates_and_kills() {
    let steps = ["a", "b"].map(|name| start(process(name)));
    let mut conductor = Conductor::new(steps.into());
    play(&mut conductor, seconds(0));
    conductor.handle_interrupt(seconds(1));
    let interrupt = Stop::Interrupt;
    assert_eq!(
        play(&mut conductor, seconds(1)),
        [signals(1, interrupt), signals(0, interrupt)]
    );
    conductor.handle_exited(seconds(2), 1, Exit::Code(0));
    assert_eq!(conductor.next_timeout(), Some(seconds(6)));
    assert_eq!(
        play(&mut conductor, seconds(6)),
        [signals(0, Stop::Terminate)]
    );
    assert_eq!(play(&mut conductor, seconds(11)), [signals(0, Stop::Kill)]);
    conductor.handle_exited(seconds(11), 0, Exit::Signal(9));
    let sweep = Command::Sweep {
        stop: Some(Stop::Terminate),
    };
    assert_eq!(play(&mut conductor, seconds(11)), [sweep]);
    conductor.handle_swept(0);
    assert_eq!(play(&mut conductor, seconds(11)), [Command::End]);
    assert!(!conductor.is_failed(), "we have ended it ourselves");
}

#[test]
fn a_line_says_how_all_are() {
    let mut flaky = process("flaky");
    flaky.respawn = Some(Respawn {
        delay: seconds(5),
        retries_max: None,
    });
    let steps = vec![start(flaky), start(process("b")), start(process("c"))];
    let mut conductor = Conductor::new(steps);
    play(&mut conductor, seconds(0));
    assert_eq!(conductor.status(), "3 running");
    conductor.handle_exited(seconds(1), 0, Exit::Code(1));
    conductor.handle_exited(seconds(1), 2, Exit::Code(0));
    play(&mut conductor, seconds(1));
    assert_eq!(
        conductor.status(),
        "1 running, to be started again: flaky, 1 ended"
    );
    conductor.handle_interrupt(seconds(1));
    assert_eq!(conductor.status(), "1 running, 2 ended; stopping b");
}

#[test]
fn a_second_ctrl_c_does_not_wait_and_a_third_kills() {
    let mut conductor = Conductor::new(vec![start(process("a"))]);
    play(&mut conductor, seconds(0));
    for (at, stop) in [(1, Stop::Interrupt), (2, Stop::Terminate), (3, Stop::Kill)] {
        conductor.handle_interrupt(seconds(at));
        assert_eq!(play(&mut conductor, seconds(at)), [signals(0, stop)]);
    }
}

#[test]
fn what_processes_leave_behind_is_given_two_seconds_and_then_killed() {
    let mut conductor = Conductor::new(vec![start(process("a"))]);
    play(&mut conductor, seconds(0));
    conductor.handle_exited(seconds(1), 0, Exit::Code(0));
    let mut killed = None;
    let mut now = seconds(1);
    while !conductor.commands.contains(&Command::End) {
        let done = play(&mut conductor, now);
        for command in done {
            let Command::Sweep { stop } = command else {
                assert_eq!(command, Command::End);
                assert_eq!(now, seconds(5), "the kernel was given two seconds");
                assert_eq!(killed, Some(seconds(3)));
                return;
            };
            if stop == Some(Stop::Kill) {
                killed = Some(now);
            }
            conductor.handle_swept(1);
        }
        now = conductor.next_timeout().expect("a look or the end");
    }
}

#[test]
fn a_process_that_fails_again_and_again_is_started_later_each_time() {
    let mut flaky = process("a");
    flaky.respawn = Some(Respawn {
        delay: millis(500),
        retries_max: Some(4),
    });
    let mut conductor = Conductor::new(vec![start(flaky)]);
    play(&mut conductor, seconds(0));
    let mut now = seconds(0);
    let mut pauses = Vec::new();
    for _ in 0..4 {
        conductor.handle_exited(now, 0, Exit::Code(1));
        play(&mut conductor, now);
        let next = conductor.next_timeout().expect("it is started again");
        pauses.push(next - now);
        now = next;
        assert_eq!(play(&mut conductor, now), [Command::Start { task: 0 }]);
    }
    assert_eq!(pauses, [500, 1000, 2000, 4000].map(millis));
    assert!(!conductor.is_failed());
    conductor.handle_exited(now, 0, Exit::Code(1));
    play(&mut conductor, now);
    assert!(conductor.is_failed(), "four times is enough");
}

#[test]
fn a_process_that_has_run_for_long_is_started_again_at_once() {
    let mut settled = process("a");
    settled.respawn = Some(Respawn {
        delay: Duration::ZERO,
        retries_max: None,
    });
    let mut conductor = Conductor::new(vec![start(settled)]);
    for now in [0, 100, 200] {
        assert_eq!(
            play(&mut conductor, seconds(now)),
            [Command::Start { task: 0 }]
        );
        conductor.handle_exited(seconds(now + 100), 0, Exit::Code(0));
    }
}

#[test]
fn ctrl_c_ends_pauses_and_timers_and_nothing_starts_any_more() {
    let mut flaky = process("a");
    flaky.respawn = Some(Respawn {
        delay: seconds(5),
        retries_max: None,
    });
    let timer = Timer {
        period: seconds(2),
        clock: TimerClock::Steady,
        steps: vec![start(process("late"))],
        cancel_on_shutdown: true,
        place: place(),
    };
    let mut conductor = Conductor::new(vec![start(flaky), Step::Timer(timer)]);
    play(&mut conductor, seconds(0));
    conductor.handle_exited(seconds(1), 0, Exit::Code(1));
    play(&mut conductor, seconds(1));
    conductor.handle_interrupt(seconds(1));
    let done = play(&mut conductor, seconds(1));
    assert!(matches!(done.as_slice(), [Command::Sweep { .. }]));
    conductor.handle_swept(0);
    assert_eq!(play(&mut conductor, seconds(60)), [Command::End]);
}

#[test]
fn a_process_whose_end_is_the_end_of_all_stops_the_others() {
    let mut main = process("main");
    main.on_exit = vec![Step::Shutdown(Shutdown {
        reason: "main has ended".into(),
        place: place(),
    })];
    let mut conductor = Conductor::new(vec![start(main), start(process("other"))]);
    play(&mut conductor, seconds(0));
    conductor.handle_exited(seconds(1), 0, Exit::Code(3));
    assert_eq!(
        play(&mut conductor, seconds(1)),
        [signals(1, Stop::Interrupt)]
    );
    assert!(conductor.is_failed());
}

#[test]
fn a_timer_starts_what_it_holds_when_it_is_due() {
    let timer = Timer {
        period: seconds(2),
        clock: TimerClock::Steady,
        steps: vec![start(process("late"))],
        cancel_on_shutdown: true,
        place: place(),
    };
    let mut conductor = Conductor::new(vec![Step::Timer(timer)]);
    assert_eq!(play(&mut conductor, seconds(1)), []);
    assert_eq!(conductor.next_timeout(), Some(seconds(2)));
    assert_eq!(
        play(&mut conductor, seconds(2)),
        [Command::Start { task: 0 }]
    );
}

#[test]
fn components_of_a_container_that_comes_again_are_loaded_again() {
    let mut container = process("container-1");
    container.respawn = Some(Respawn {
        delay: seconds(1),
        retries_max: None,
    });
    let load = Load {
        container: "/c".into(),
        process: Some("container-1".into()),
        components: Vec::new(),
        place: place(),
    };
    let mut conductor = Conductor::new(vec![start(container), Step::Load(load)]);
    let load = Command::Load { load: 0 };
    let begin = Command::Start { task: 0 };
    assert_eq!(
        play(&mut conductor, seconds(0)),
        [begin.clone(), load.clone()]
    );
    conductor.handle_loaded(0, 0);
    conductor.handle_exited(seconds(1), 0, Exit::Signal(11));
    assert_eq!(play(&mut conductor, seconds(1)), []);
    assert_eq!(play(&mut conductor, seconds(2)), [begin, load]);
    conductor.handle_interrupt(seconds(2));
    assert!(play(&mut conductor, seconds(2)).contains(&Command::ForgetLoad { load: 0 }));
}
