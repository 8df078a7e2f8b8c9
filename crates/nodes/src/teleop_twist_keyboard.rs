//! `teleop_twist_keyboard`: velocities from the keys of a terminal, as ROS 2's node of
//! that name.
//!
//! Each key publishes one velocity. The terminal gives keys at once and without echo
//! while the node runs. At the end the node stops the robot and restores the terminal,
//! whatever ended it.

use std::fs::File;
use std::io::{Read, Write, stdin, stdout};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use pteros::component::ComponentError;
use pteros::interfaces::geometry_msgs::msg::Twist;
use pteros::parameter::ParameterDescriptor;
use pteros::prelude::*;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::getpgrp;
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp,
    tcsetattr,
};
use signal_hook::consts::SIGHUP;

use crate::running_node::RunningNode;
use crate::velocity::VelocityPublisher;

/// How often the thread looks whether the node has ended.
const POLL_PERIOD: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};
/// Changes of the speed between two prints of the keys, as upstream.
const CHANGES_PER_HELP: u32 = 15;

const HELP: &str = "\
Keys move the robot; each one publishes a velocity on cmd_vel.

   u  i  o      forwards, turning left or right
   j  k  l      turn left, stop, turn right
   m  ,  .      backwards, turning left or right

   U  I  O      with shift: sideways in place of turning
   J  K  L
   M  <  >

   t / b        up / down
   q / z        speed and turn 10 % up / down
   w / x        speed alone
   e / c        turn alone

Other keys stop the robot. Ctrl-C ends the node.
";

/// Starts the node on the terminal of this process.
pub(crate) fn start(
    context: &Context,
    options: NodeOptions,
    _: &[String],
) -> Result<RunningNode, ComponentError> {
    let input = File::from(stdin().as_fd().try_clone_to_owned()?);
    // The terminal is closed. SIGHUP that was ignored is handled too: without a terminal
    // the node has no use.
    let hang_up = Arc::default();
    signal_hook::flag::register(SIGHUP, Arc::clone(&hang_up))?;
    start_on(context, options, input, hang_up)
}

fn start_on(
    context: &Context,
    options: NodeOptions,
    input: File,
    hang_up: Arc<AtomicBool>,
) -> Result<RunningNode, ComponentError> {
    let node = context.create_node(options.name("teleop_twist_keyboard"))?;
    let read_only = || ParameterDescriptor::new().read_only();
    let stamped = node.declare_parameter_with("stamped", false, read_only())?;
    let frame = node.declare_parameter_with("frame_id", "", read_only())?;
    let speed = node.declare_parameter_with("speed", 0.5, read_only())?;
    let turn = node.declare_parameter_with("turn", 1.0, read_only())?;
    let (is_stamped, frame) = (stamped.value(), frame.value());
    if !is_stamped && !frame.is_empty() {
        return Err(format!(
            "parameter \"frame_id\" is \"{frame}\", and 'stamped' is false: 'frame_id' can only be set when 'stamped' is True; set stamped:=true, or leave frame_id out"
        )
        .into());
    }
    let mut teleop = Teleop::new(speed.value(), turn.value());
    let velocities = VelocityPublisher::new(&node, is_stamped.then_some(frame))?;
    let terminal = Terminal::open(&input)?;
    let output = Arc::new(Output {
        velocities,
        is_over: Mutex::new(false),
    });
    let ending = Ending {
        output: output.clone(),
        _terminal: terminal,
    };
    print(HELP);
    print(&teleop.status());
    let context = context.clone();
    node.context().spawn_thread("keyboard", move || {
        let is_hung_up = || hang_up.load(Ordering::Relaxed);
        let is_over = || is_hung_up() || *output.is_over.lock() || context.is_shut_down();
        let is_gone = read_keys(input, is_over, |key| {
            let (twist, text) = teleop.press(key);
            output.publish(twist);
            text.into_iter().for_each(|text| print(&text));
        });
        if is_gone || is_hung_up() {
            output.stop();
            context.shutdown();
        }
    })?;
    Ok(RunningNode::new(node, ending))
}

/// The terminal may be gone, which must not end the thread before the robot is stopped.
fn print(text: &str) {
    let _ = writeln!(stdout(), "{text}");
}

/// Reads keys until the node is over. True if the terminal is gone.
fn read_keys(mut input: File, is_over: impl Fn() -> bool, mut press: impl FnMut(char)) -> bool {
    let mut bytes = [0; 64];
    while !is_over() {
        let mut ready = [PollFd::new(&input, PollFlags::IN)];
        if poll(&mut ready, Some(&POLL_PERIOD)).unwrap_or(0) == 0 {
            continue;
        }
        match input.read(&mut bytes) {
            Ok(count @ 1..) => {
                for byte in bytes.iter().take(count) {
                    press(char::from(*byte));
                }
            }
            Ok(0) | Err(_) => return true,
        }
    }
    false
}

/// Publishes velocities until the robot is stopped for good.
struct Output {
    velocities: VelocityPublisher,
    /// Held while a velocity is published, so that none follows the stop.
    is_over: Mutex<bool>,
}

impl Output {
    fn publish(&self, twist: Twist) {
        let is_over = self.is_over.lock();
        if !*is_over {
            self.velocities.publish(twist);
        }
    }

    fn stop(&self) {
        let mut is_over = self.is_over.lock();
        if !std::mem::replace(&mut *is_over, true) {
            self.velocities.publish(Twist::default());
        }
    }
}

/// Ends the node: stops the robot, the thread, and restores the terminal.
struct Ending {
    output: Arc<Output>,
    _terminal: Terminal,
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.output.stop();
    }
}

/// The terminal, which is as it was when this is dropped.
struct Terminal {
    file: File,
    saved: Termios,
}

impl Terminal {
    fn open(input: &File) -> Result<Self, ComponentError> {
        let saved = tcgetattr(input).map_err(|_| {
            "standard input is no terminal, so there are no keys; start the node in a terminal: pteros run teleop_twist_keyboard teleop_twist_keyboard (in a launch file: prefix=\"xterm -e\")"
        })?;
        if !is_in_foreground(input) {
            return Err(
                "the process runs in the background of its terminal, so it gets no keys; start it in the foreground".into(),
            );
        }
        let mut raw = saved.clone();
        // Ctrl-C stays a signal, which ends the node as it ends any other.
        raw.local_modes
            .remove(LocalModes::ICANON | LocalModes::ECHO);
        // Ctrl-\ and Ctrl-Z would leave a robot that drives on, and Ctrl-S a node that
        // waits for Ctrl-Q. They are keys that stop the robot; 0 is _POSIX_VDISABLE.
        raw.input_modes.remove(InputModes::IXON);
        for code in [SpecialCodeIndex::VQUIT, SpecialCodeIndex::VSUSP] {
            raw.special_codes[code] = 0;
        }
        tcsetattr(input, OptionalActions::Now, &raw)?;
        Ok(Self {
            file: input.try_clone()?,
            saved,
        })
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // One in the background would be stopped.
        if is_in_foreground(&self.file) {
            // The terminal may be gone.
            let _ = tcsetattr(&self.file, OptionalActions::Drain, &self.saved);
        }
    }
}

/// Whether this process may change the terminal. One that does not control the session
/// has no background.
fn is_in_foreground(terminal: &File) -> bool {
    tcgetpgrp(terminal).map_or(true, |group| group == getpgrp())
}

/// The speeds, and the direction of the last key.
struct Teleop {
    speed: f64,
    turn: f64,
    /// Forwards, left, up, turn.
    direction: [f64; 4],
    changes: u32,
}

impl Teleop {
    fn new(speed: f64, turn: f64) -> Self {
        Self {
            speed,
            turn,
            direction: [0.0; 4],
            changes: 0,
        }
    }

    fn status(&self) -> String {
        format!("currently:\tspeed {:?}\tturn {:?} ", self.speed, self.turn)
    }

    /// The velocity after a key, and what to print.
    fn press(&mut self, key: char) -> (Twist, Vec<String>) {
        let mut texts = Vec::new();
        if let Some((speed, turn)) = factors(key) {
            self.speed *= speed;
            self.turn *= turn;
            texts.push(self.status());
            self.changes += 1;
            if self.changes.is_multiple_of(CHANGES_PER_HELP) {
                texts.push(HELP.into());
            }
        } else {
            self.direction = direction(key);
        }
        let [x, y, z, turn] = self.direction;
        let mut twist = Twist::default();
        twist.linear.x = x * self.speed;
        twist.linear.y = y * self.speed;
        twist.linear.z = z * self.speed;
        twist.angular.z = turn * self.turn;
        (twist, texts)
    }
}

/// By how much a key changes the speed and the turn.
fn factors(key: char) -> Option<(f64, f64)> {
    Some(match key {
        'q' => (1.1, 1.1),
        'z' => (0.9, 0.9),
        'w' => (1.1, 1.0),
        'x' => (0.9, 1.0),
        'e' => (1.0, 1.1),
        'c' => (1.0, 0.9),
        _ => return None,
    })
}

/// The direction of a key; zero stops.
fn direction(key: char) -> [f64; 4] {
    match key {
        'i' | 'I' => [1.0, 0.0, 0.0, 0.0],
        'o' => [1.0, 0.0, 0.0, -1.0],
        'j' => [0.0, 0.0, 0.0, 1.0],
        'l' => [0.0, 0.0, 0.0, -1.0],
        'u' => [1.0, 0.0, 0.0, 1.0],
        ',' | '<' => [-1.0, 0.0, 0.0, 0.0],
        '.' => [-1.0, 0.0, 0.0, 1.0],
        'm' => [-1.0, 0.0, 0.0, -1.0],
        'O' => [1.0, -1.0, 0.0, 0.0],
        'J' => [0.0, 1.0, 0.0, 0.0],
        'L' => [0.0, -1.0, 0.0, 0.0],
        'U' => [1.0, 1.0, 0.0, 0.0],
        '>' => [-1.0, -1.0, 0.0, 0.0],
        'M' => [-1.0, 1.0, 0.0, 0.0],
        't' => [0.0, 0.0, 1.0, 0.0],
        'b' => [0.0, 0.0, -1.0, 0.0],
        _ => [0.0; 4],
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pteros::parameter::Parameter;
    use rustix::fs::{Mode, OFlags};
    use rustix::process::Signal;
    use rustix::pty::{OpenptFlags, openpt, ptsname, unlockpt};

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(20);

    /// Linear x, y, z and angular z after the last of these keys.
    fn after(keys: &str) -> [f64; 4] {
        let mut teleop = Teleop::new(0.5, 1.0);
        let twist = keys.chars().map(|key| teleop.press(key).0).last().unwrap();
        let linear = &twist.linear;
        [linear.x, linear.y, linear.z, twist.angular.z]
    }

    #[test]
    fn keys_are_directions_and_speeds() {
        for (keys, expected) in [
            ("i", [0.5, 0.0, 0.0, 0.0]),
            ("u", [0.5, 0.0, 0.0, 1.0]),
            (".", [-0.5, 0.0, 0.0, 1.0]),
            ("m", [-0.5, 0.0, 0.0, -1.0]),
            ("U", [0.5, 0.5, 0.0, 0.0]),
            (">", [-0.5, -0.5, 0.0, 0.0]),
            ("tb", [0.0, 0.0, -0.5, 0.0]),
            ("ik", [0.0, 0.0, 0.0, 0.0]),
            ("oq", [0.5 * 1.1, 0.0, 0.0, -1.1]),
            ("owe", [0.5 * 1.1, 0.0, 0.0, -1.1]),
            ("jzc", [0.0, 0.0, 0.0, 0.9 * 0.9]),
            ("ix", [0.45, 0.0, 0.0, 0.0]),
        ] {
            assert_eq!(after(keys), expected, "{keys}");
        }
    }

    #[test]
    fn a_change_of_the_speed_is_said_and_the_keys_again_after_fifteen() {
        let mut teleop = Teleop::new(0.5, 1.0);
        let (_, texts) = teleop.press('q');
        assert_eq!(texts, ["currently:\tspeed 0.55\tturn 1.1 "]);
        assert!(teleop.press('i').1.is_empty());
        let texts: Vec<usize> = (0..14).map(|_| teleop.press('w').1.len()).collect();
        assert_eq!(texts[13], 2, "{texts:?}");
        assert!(texts[..13].iter().all(|count| *count == 1), "{texts:?}");
    }

    /// Both ends of a terminal: the user's, and the program's.
    fn terminal() -> (File, File) {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        let user = openpt(flags).unwrap();
        unlockpt(&user).unwrap();
        let name = ptsname(&user, Vec::new()).unwrap();
        let program = rustix::fs::open(&*name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty());
        (user.into(), program.unwrap().into())
    }

    fn context() -> Context {
        Context::with_options(ContextOptions::local(149)).unwrap()
    }

    #[test]
    fn keys_publish_velocities_and_the_end_stops_the_robot_and_restores_the_terminal() {
        let (mut user, program) = terminal();
        let given = || tcgetattr(&program).unwrap().local_modes;
        let before = given();
        let context = context();
        let node = context.create_node("test").unwrap();
        let velocities = node
            .create_polled_subscription::<Twist>("cmd_vel".keep_last(10))
            .unwrap();
        let input = program.try_clone().unwrap();
        let running = start_on(&context, NodeOptions::default(), input, Arc::default()).unwrap();
        assert!(velocities.wait_for_matched(1, TIMEOUT));
        assert!(!given().intersects(LocalModes::ICANON | LocalModes::ECHO));
        user.write_all(b"ik").unwrap();
        let take = || {
            velocities
                .take_timeout(TIMEOUT)
                .expect("a velocity")
                .linear
                .x
        };
        assert_eq!([take(), take()], [0.5, 0.0]);
        // Ctrl-\, Ctrl-Z and Ctrl-S.
        user.write_all(b"i\x1ci\x1ai\x13i").unwrap();
        for _ in 0..3 {
            assert_eq!([take(), take()], [0.5, 0.0]);
        }
        assert_eq!(take(), 0.5);
        drop(running);
        assert_eq!(take(), 0.0, "the end stops the robot");
        assert_eq!(given(), before);
    }

    /// Starts the node, lets it drive, and ends it by `end`, which gets the user's end of
    /// the terminal.
    fn is_stopped_by(hang_up: Arc<AtomicBool>, end: impl FnOnce(File)) {
        let (mut user, program) = terminal();
        let (other, context) = (context(), context());
        let node = other.create_node("test").unwrap();
        let velocities = node
            .create_polled_subscription::<Twist>("cmd_vel".keep_last(10))
            .unwrap();
        let running = start_on(&context, NodeOptions::default(), program, hang_up).unwrap();
        assert!(velocities.wait_for_matched(1, TIMEOUT));
        let take = || {
            let velocity = velocities.take_timeout(TIMEOUT);
            velocity.expect("a velocity").linear.x
        };
        user.write_all(b"i").unwrap();
        assert_eq!(take(), 0.5);
        end(user);
        running.node().spin();
        assert!(context.is_shut_down());
        assert_eq!(take(), 0.0, "the robot is stopped");
    }

    #[test]
    fn a_terminal_that_goes_stops_the_robot_and_ends_the_node() {
        is_stopped_by(Arc::default(), drop);
    }

    #[test]
    fn a_hang_up_stops_the_robot_and_ends_the_node() {
        let hang_up: Arc<AtomicBool> = Arc::default();
        signal_hook::flag::register(SIGHUP, hang_up.clone()).unwrap();
        let mut kept = None;
        is_stopped_by(hang_up, |user| {
            kept = Some(user);
            rustix::process::kill_process(rustix::process::getpid(), Signal::HUP).unwrap();
        });
    }

    #[test]
    fn without_a_terminal_or_with_a_useless_frame_the_node_says_what_to_do() {
        let problem = |input: File, frame: &str| {
            let frame = Parameter::new("frame_id", frame);
            let options = NodeOptions::default().parameter_overrides([frame]);
            let started = start_on(&context(), options, input, Arc::default());
            started.err().expect("refused").to_string()
        };
        let none = problem(File::open("/dev/null").unwrap(), "");
        assert!(none.contains("start the node in a terminal"), "{none}");
        let useless = problem(terminal().1, "base");
        assert!(useless.contains("frame_id"), "{useless}");
    }
}
