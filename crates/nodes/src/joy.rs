//! `joy joy_node`: publishes the state of a joystick, as ROS 2's node of that name.
//!
//! It reads an event device of Linux (evdev), as SDL below upstream's node does. Without a
//! joystick it says so and looks again each second. Vibration (`joy/set_feedback`) is not
//! there yet.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use evdev::{Device, EventSummary};
use parking_lot::Mutex;
use pteros::clock::{Clock, ClockType};
use pteros::component::ComponentError;
use pteros::interfaces::sensor_msgs::msg::Joy;
use pteros::prelude::*;
use pteros::{error, info, warn};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::joystick::{AxisInfo, Event, Joystick, Settings};
use crate::running_node::RunningNode;

/// Folder of the event devices.
const DEVICES: &str = "/dev/input";
/// How often a missing joystick is looked for.
const SEARCH_PERIOD: Duration = Duration::from_secs(1);
/// How long the thread waits at most before it looks whether the node has ended.
const WAIT_MAX: Duration = Duration::from_millis(200);
/// Codes of buttons that a joystick or a game controller has.
const BUTTONS: [std::ops::RangeInclusive<u16>; 2] = [0x120..=0x13f, 0x2c0..=0x2e7];
/// Codes of the first two axes, `ABS_X` and `ABS_Y`.
const FIRST_AXES: [u16; 2] = [0, 1];

/// Starts the node.
pub(crate) fn start(
    context: &Context,
    options: NodeOptions,
    _: &[String],
) -> Result<RunningNode, ComponentError> {
    let node = context.create_node(options.name("joy_node"))?;
    let wanted = Wanted {
        number: node.declare_parameter("device_id", 0)?.value(),
        name: node.declare_parameter("device_name", "")?.value(),
    };
    let settings = settings(&node)?;
    let output = Arc::new(Output {
        node: node.clone(),
        publisher: node.create_publisher("joy".keep_last(10))?,
        state: Mutex::default(),
    });
    let reader = Reader {
        clock: node.clock_of(ClockType::SteadyTime),
        node: node.clone(),
        wanted,
        settings,
        output: output.clone(),
    };
    context.spawn_thread("joystick", move || reader.run())?;
    Ok(RunningNode::new(node, Ending(output)))
}

fn settings(node: &Node) -> Result<Settings, ComponentError> {
    let deadzone = node.declare_parameter("deadzone", 0.05)?.value();
    if !(0.0..=1.0).contains(&deadzone) {
        return Err(format!("deadzone = {deadzone}: Deadzone must be between 0.0 and 1.0").into());
    }
    let rate = node.declare_parameter("autorepeat_rate", 20.0)?.value();
    if !(0.0..=1000.0).contains(&rate) {
        return Err(format!(
            "autorepeat_rate = {rate}: Autorepeat rate must be >= 0.0 and <= 1000.0 Hz; 0 turns it off"
        )
        .into());
    }
    let interval = node.declare_parameter("coalesce_interval_ms", 1)?.value();
    let interval = u64::try_from(interval).map_err(|_| {
        format!("coalesce_interval_ms = {interval}: coalesce_interval_ms must be positive; 0 turns it off")
    })?;
    Ok(Settings {
        deadzone,
        repeat_interval: (rate > 0.0).then(|| {
            // Whole milliseconds, as upstream.
            let interval = Duration::try_from_secs_f64(1.0 / rate).unwrap_or(Duration::MAX);
            let millis = u64::try_from(interval.as_millis()).unwrap_or(u64::MAX);
            Duration::from_millis(millis)
        }),
        has_sticky_buttons: node.declare_parameter("sticky_buttons", false)?.value(),
        coalesce_interval: Duration::from_millis(interval),
    })
}

/// Publishes states; after the last one it says that the joystick is released.
struct Output {
    node: Node,
    publisher: Publisher<Joy>,
    state: Mutex<OutputState>,
}

#[derive(Default)]
struct OutputState {
    is_over: bool,
    /// The numbers of axes and buttons of the last state, unless it released them.
    published: Option<(usize, usize)>,
}

impl Output {
    fn is_over(&self) -> bool {
        self.state.lock().is_over || self.node.context().is_shut_down()
    }

    fn publish(&self, joystick: &mut Joystick, now: i64) {
        let mut state = self.state.lock();
        // Nothing may follow the release at the end.
        if state.is_over {
            return;
        }
        joystick.set_published(now);
        let (axes, buttons) = (&joystick.axis_values, &joystick.button_values);
        state.published = Some((axes.len(), buttons.len()));
        self.send(axes.clone(), buttons.clone());
    }

    /// Centres the axes and releases the buttons of a joystick that says no more, so that
    /// a robot that follows it stops.
    fn release(&self, is_over: bool) {
        let mut state = self.state.lock();
        state.is_over |= is_over;
        if let Some((axes, buttons)) = state.published.take() {
            self.send(vec![0.0; axes], vec![0; buttons]);
        }
    }

    fn send(&self, axes: Vec<f32>, buttons: Vec<i32>) {
        let mut joy = Joy {
            axes,
            buttons,
            ..Joy::default()
        };
        joy.header.frame_id = "joy".into();
        joy.header.stamp = self.node.now().into();
        if let Err(problem) = self.publisher.publish_owned(joy) {
            error!(self.node.logger(), "{problem}");
        }
    }
}

/// Ends the thread of a dropped node.
struct Ending(Arc<Output>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.release(true);
    }
}

/// The joystick that the parameters name: by its name, else by its number.
struct Wanted {
    number: i64,
    name: String,
}

struct Reader {
    node: Node,
    clock: Clock,
    wanted: Wanted,
    settings: Settings,
    output: Arc<Output>,
}

impl Reader {
    fn run(self) {
        let mut reported = None;
        while !self.output.is_over() {
            match open(Path::new(DEVICES), &self.wanted) {
                Ok(device) => {
                    let name = device.name().unwrap_or("(no name)");
                    info!(
                        self.node.logger(),
                        "Opened joystick: {name}.  deadzone: {:.6}", self.settings.deadzone
                    );
                    reported = None;
                    self.read(device);
                }
                Err(problem) => {
                    if reported.as_ref() != Some(&problem) {
                        warn!(
                            self.node.logger(),
                            "{problem}; the node looks again each second"
                        );
                        reported = Some(problem);
                    }
                    self.pause();
                }
            }
        }
    }

    fn pause(&self) {
        let until = self.clock.now() + SEARCH_PERIOD;
        while !self.output.is_over() && self.clock.now() < until {
            self.clock.sleep(WAIT_MAX);
        }
    }

    /// Publishes the states of a joystick until it is gone, or the node is over.
    fn read(&self, mut device: Device) {
        if let Err(problem) = self.try_read(&mut device) {
            self.output.release(false);
            warn!(
                self.node.logger(),
                "the joystick is gone ({problem}); the node looks for it each second"
            );
            self.pause();
        }
    }

    fn try_read(&self, device: &mut Device) -> std::io::Result<()> {
        device.set_nonblocking(true)?;
        let now = || self.clock.now().as_nanos();
        let mut joystick = joystick(device, &self.settings, now())?;
        while !self.output.is_over() {
            let wait = joystick.due_in(now()).unwrap_or(WAIT_MAX).min(WAIT_MAX);
            if is_readable(device, wait)? {
                match device.fetch_events() {
                    Ok(events) => {
                        for event in events.filter_map(|event| known(event.destructure())) {
                            if joystick.handle(event, now()) {
                                self.output.publish(&mut joystick, now());
                            }
                        }
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error),
                }
            }
            if joystick.due_in(now()).is_some_and(|wait| wait.is_zero()) {
                self.output.publish(&mut joystick, now());
            }
        }
        Ok(())
    }
}

fn is_readable(device: &Device, wait: Duration) -> std::io::Result<bool> {
    let mut ready = [PollFd::new(device, PollFlags::IN)];
    let wait = Timespec::try_from(wait).unwrap_or_default();
    match poll(&mut ready, Some(&wait)) {
        Ok(count) => Ok(count > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn known(event: EventSummary) -> Option<Event> {
    match event {
        EventSummary::AbsoluteAxis(_, axis, value) => Some(Event::Axis(axis.0, value)),
        // 2 is the repetition of a pressed key.
        EventSummary::Key(_, key, value @ (0 | 1)) => Some(Event::Button(key.code(), value == 1)),
        _ => None,
    }
}

fn joystick(device: &Device, settings: &Settings, now: i64) -> std::io::Result<Joystick> {
    let axes = device.get_absinfo()?.map(|(code, info)| AxisInfo {
        code: code.0,
        minimum: info.minimum(),
        maximum: info.maximum(),
        value: info.value(),
    });
    let buttons = device
        .supported_keys()
        .into_iter()
        .flat_map(|keys| keys.iter());
    Ok(Joystick::new(
        settings,
        axes,
        buttons.map(|key| key.code()),
        now,
    ))
}

/// Opens the joystick that is wanted.
fn open(folder: &Path, wanted: &Wanted) -> Result<Device, String> {
    let mut names = Vec::new();
    let mut refused = None;
    for path in event_devices(folder) {
        let device = match Device::open(&path) {
            Ok(device) if is_joystick(&device) => device,
            Ok(_) => continue,
            Err(error) => {
                if error.kind() == ErrorKind::PermissionDenied {
                    refused.get_or_insert(path);
                }
                continue;
            }
        };
        let name = device.name().unwrap_or_default().to_owned();
        let is_wanted = match wanted.name.as_str() {
            "" => usize::try_from(wanted.number) == Ok(names.len()),
            wanted => wanted == name,
        };
        if is_wanted {
            return Ok(device);
        }
        names.push(format!("\"{name}\""));
    }
    let what = match wanted.name.as_str() {
        "" => format!("no joystick {} (device_id)", wanted.number),
        name => format!("no joystick \"{name}\" (device_name)"),
    };
    let found = match (names.is_empty(), refused) {
        (false, _) => format!("connected are: {}", names.join(", ")),
        (true, Some(path)) => format!(
            "{} may not be opened; add the user to the group input",
            path.display()
        ),
        (true, None) => format!(
            "no event device of {} is one; connect it, or pass the device into the container",
            folder.display()
        ),
    };
    Err(format!("{what}: {found}"))
}

/// The event devices by number.
fn event_devices(folder: &Path) -> Vec<PathBuf> {
    let mut devices: Vec<(u32, PathBuf)> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let number = path.file_name()?.to_str()?.strip_prefix("event")?;
            Some((number.parse().ok()?, path))
        })
        .collect();
    devices.sort();
    devices.into_iter().map(|(_, path)| path).collect()
}

fn is_joystick(device: &Device) -> bool {
    let axes = device.supported_absolute_axes();
    let has_stick = FIRST_AXES
        .iter()
        .all(|code| axes.is_some_and(|axes| axes.contains(evdev::AbsoluteAxisCode(*code))));
    let mut keys = device
        .supported_keys()
        .into_iter()
        .flat_map(|keys| keys.iter());
    has_stick && keys.any(|key| BUTTONS.iter().any(|codes| codes.contains(&key.code())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pteros_test_support::folder::Folder;

    const TIMEOUT: Duration = Duration::from_secs(20);

    #[test]
    fn a_joystick_that_goes_and_the_end_release_everything() {
        let context = Context::with_options(ContextOptions::local(149)).unwrap();
        let node = context.create_node("joy_node").unwrap();
        let states = node
            .create_polled_subscription::<Joy>("joy".keep_last(10))
            .unwrap();
        let publisher = node.create_publisher("joy".keep_last(10)).unwrap();
        assert!(states.wait_for_matched(1, TIMEOUT));
        let settings = settings(&node).unwrap();
        let output = Arc::new(Output {
            node,
            publisher,
            state: Mutex::default(),
        });
        let axis = AxisInfo {
            code: 0,
            minimum: -1,
            maximum: 1,
            value: 1,
        };
        let mut joystick = Joystick::new(&settings, [axis], [0x130], 0);
        joystick.handle(Event::Button(0x130, true), 0);
        let take = || {
            let joy = states.take_timeout(TIMEOUT).expect("a state");
            (joy.axes.to_vec(), joy.buttons.to_vec())
        };
        let (moved, released) = ((vec![-1.0], vec![1]), (vec![0.0], vec![0]));
        output.release(false);
        output.publish(&mut joystick, 0);
        assert_eq!(take(), moved, "nothing to release before");
        output.release(false);
        assert_eq!(take(), released, "the device is gone");
        output.publish(&mut joystick, 0);
        assert_eq!(take(), moved);
        drop(Ending(output.clone()));
        output.publish(&mut joystick, 0);
        assert_eq!(take(), released, "the end");
        assert!(states.take().is_none(), "nothing follows");
    }

    #[test]
    fn devices_are_tried_by_number_and_a_missing_one_is_named() {
        let folder = Folder::new("joysticks");
        for name in ["event10", "event2", "mouse0", "eventx"] {
            folder.write(name, "");
        }
        let path = folder.path();
        let names: Vec<_> = event_devices(path);
        assert_eq!(names, [path.join("event2"), path.join("event10")]);
        let problem = |number: i64, name: &str| {
            let name = name.to_owned();
            open(path, &Wanted { number, name }).map(drop).unwrap_err()
        };
        let text = problem(1, "");
        assert!(
            text.starts_with("no joystick 1 (device_id): no event"),
            "{text}"
        );
        let text = problem(0, "Pad");
        assert!(
            text.starts_with("no joystick \"Pad\" (device_name)"),
            "{text}"
        );
    }
}
