//! State of a joystick: what its events mean for a `Joy` message, and when one is due.
//!
//! Axes and buttons have SDL's order, as in upstream's node: axes and buttons by their
//! codes, then two axes for each hat. Times are in ns and given by the caller.

use std::time::Duration;

/// First code of a joystick's buttons (`BTN_JOYSTICK`). Buttons below come last.
const FIRST_BUTTON: u16 = 0x120;
/// Codes of the axes of hats (`ABS_HAT0X` to `ABS_HAT3Y`).
const HATS: std::ops::RangeInclusive<u16> = 0x10..=0x17;

/// The parameters of the node.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) deadzone: f64,
    /// `None`: only changes are published.
    pub(crate) repeat_interval: Option<Duration>,
    pub(crate) has_sticky_buttons: bool,
    /// How long the first change of an axis waits for further ones.
    pub(crate) coalesce_interval: Duration,
}

/// An axis: its code, its limits and its value now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AxisInfo {
    pub(crate) code: u16,
    pub(crate) minimum: i32,
    pub(crate) maximum: i32,
    pub(crate) value: i32,
}

/// An event of the device.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    Axis(u16, i32),
    /// A button, and whether it is pressed.
    Button(u16, bool),
}

/// A joystick that is connected.
#[derive(Debug)]
pub(crate) struct Joystick {
    settings: Settings,
    axes: Vec<AxisInfo>,
    hats: Vec<AxisInfo>,
    buttons: Vec<u16>,
    pub(crate) axis_values: Vec<f32>,
    pub(crate) button_values: Vec<i32>,
    /// When the first unpublished change of an axis came.
    changed: Option<i64>,
    published: i64,
}

impl Joystick {
    /// A joystick with these axes and button codes.
    pub(crate) fn new(
        settings: &Settings,
        axes: impl IntoIterator<Item = AxisInfo>,
        buttons: impl IntoIterator<Item = u16>,
        now: i64,
    ) -> Self {
        let (mut hats, mut axes): (Vec<AxisInfo>, Vec<AxisInfo>) =
            axes.into_iter().partition(|axis| HATS.contains(&axis.code));
        axes.sort_by_key(|axis| axis.code);
        hats.sort_by_key(|hat| hat.code);
        let mut buttons: Vec<u16> = buttons.into_iter().collect();
        buttons.sort_by_key(|code| (*code < FIRST_BUTTON, *code));
        let values = axes
            .iter()
            .map(|axis| axis_value(axis, axis.value, settings.deadzone));
        let values = values.chain(hats.iter().map(|hat| hat_value(hat.value)));
        Self {
            axis_values: values.collect(),
            button_values: vec![0; buttons.len()],
            settings: settings.clone(),
            axes,
            hats,
            buttons,
            changed: None,
            published: now,
        }
    }

    /// Takes an event. True if the state is to be published at once.
    pub(crate) fn handle(&mut self, event: Event, now: i64) -> bool {
        match event {
            Event::Axis(code, value) if HATS.contains(&code) => {
                let at = self.hats.iter().position(|hat| hat.code == code);
                let at = at.map(|at| self.axes.len() + at);
                self.set_axis(at, hat_value(value))
            }
            Event::Axis(code, value) => {
                let at = self.axes.iter().position(|axis| axis.code == code);
                let axis = at.and_then(|at| self.axes.get(at));
                let value = axis.map(|axis| axis_value(axis, value, self.settings.deadzone));
                let has_changed = value.is_some_and(|value| self.set_axis(at, value));
                if has_changed {
                    self.changed.get_or_insert(now);
                }
                has_changed && self.settings.coalesce_interval.is_zero()
            }
            Event::Button(code, is_pressed) => {
                let at = self.buttons.iter().position(|button| *button == code);
                let Some(value) = at.and_then(|at| self.button_values.get_mut(at)) else {
                    return false;
                };
                match (self.settings.has_sticky_buttons, is_pressed) {
                    (true, true) => *value = 1 - *value,
                    (true, false) => return false,
                    (false, _) => *value = i32::from(is_pressed),
                }
                true
            }
        }
    }

    fn set_axis(&mut self, at: Option<usize>, value: f32) -> bool {
        let Some(known) = at.and_then(|at| self.axis_values.get_mut(at)) else {
            return false;
        };
        let has_changed = *known != value;
        *known = value;
        has_changed
    }

    /// How long until the state is due, without further events; `None` for ever.
    pub(crate) fn due_in(&self, now: i64) -> Option<Duration> {
        let until = |since: i64, interval: Duration| {
            let passed = u64::try_from(now.saturating_sub(since)).unwrap_or(0);
            interval.saturating_sub(Duration::from_nanos(passed))
        };
        let changed = self
            .changed
            .map(|since| until(since, self.settings.coalesce_interval));
        let repeated = self.settings.repeat_interval;
        let repeated = repeated.map(|interval| until(self.published, interval));
        changed.into_iter().chain(repeated).min()
    }

    /// The state was published.
    pub(crate) fn set_published(&mut self, now: i64) {
        self.changed = None;
        self.published = now;
    }
}

/// From -1 to 1, forwards and to the left positive, 0 within the dead zone.
fn axis_value(axis: &AxisInfo, value: i32, deadzone: f64) -> f32 {
    let (minimum, maximum) = (f64::from(axis.minimum), f64::from(axis.maximum));
    let span = maximum - minimum;
    // SDL's range, of 16 bits.
    let raw = if span > 0.0 {
        let part = (f64::from(value) - minimum) / span;
        (part * 65535.0 + 0.5).floor().clamp(0.0, 65535.0) - 32768.0
    } else {
        f64::from(value)
    };
    let raw = raw.clamp(-32767.0, 32767.0);
    let still = 32767.0 * deadzone;
    let moved = if raw > still {
        raw - still
    } else if raw < -still {
        raw + still
    } else {
        return 0.0;
    };
    #[allow(clippy::cast_possible_truncation, reason = "the message has f32")]
    let value = (moved * (-1.0 / (1.0 - deadzone) / 32767.0)) as f32;
    value
}

/// Left and up are positive.
fn hat_value(value: i32) -> f32 {
    match value.signum() {
        -1 => 1.0,
        1 => -1.0,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;
    const A: u16 = 0x130;
    const TRIGGER: u16 = 0x120;
    const HAT_X: u16 = 0x10;

    fn axis(code: u16, maximum: i32) -> AxisInfo {
        AxisInfo {
            code,
            minimum: if maximum == 1 { -1 } else { -maximum - 1 },
            maximum,
            value: 0,
        }
    }

    fn settings() -> Settings {
        Settings {
            deadzone: 0.05,
            repeat_interval: Some(Duration::from_millis(50)),
            has_sticky_buttons: false,
            coalesce_interval: Duration::from_millis(1),
        }
    }

    fn joystick(settings: &Settings) -> Joystick {
        let axes = [
            axis(HAT_X + 1, 1),
            axis(HAT_X, 1),
            axis(1, 32767),
            axis(0, 32767),
        ];
        Joystick::new(settings, axes, [1, A, TRIGGER], 0)
    }

    #[test]
    fn axes_come_first_then_hats_and_joystick_buttons_before_others() {
        let mut stick = joystick(&settings());
        assert_eq!(stick.axis_values, [0.0; 4]);
        assert_eq!(stick.button_values, [0; 3]);
        stick.handle(Event::Axis(0, -32768), 0);
        stick.handle(Event::Axis(1, 32767), 0);
        assert!(stick.handle(Event::Axis(HAT_X, -1), 0), "at once");
        assert!(stick.handle(Event::Axis(HAT_X + 1, 1), 0));
        assert_eq!(stick.axis_values, [1.0, -1.0, 1.0, -1.0]);
        assert!(stick.handle(Event::Button(A, true), 0));
        assert_eq!(stick.button_values, [0, 1, 0]);
        assert!(stick.handle(Event::Button(1, true), 0));
        assert!(stick.handle(Event::Button(A, false), 0));
        assert_eq!(stick.button_values, [0, 0, 1]);
        assert!(!stick.handle(Event::Button(0x2ff, true), 0), "unknown");
        assert!(!stick.handle(Event::Axis(0x28, 5), 0), "unknown");
    }

    #[test]
    fn the_dead_zone_is_cut_out_smoothly() {
        let whole = axis(0, 32767);
        let value = |raw: i32, deadzone: f64| axis_value(&whole, raw, deadzone);
        assert_eq!(value(1638, 0.05), 0.0);
        assert_eq!(value(-1638, 0.05), 0.0);
        let just = value(-1700, 0.05);
        assert!(just > 0.0 && just < 0.01, "{just}");
        assert_eq!(value(32767, 0.05), -1.0);
        assert_eq!(value(-32767, 0.5), 1.0);
        assert_eq!(value(16384, 0.0), -16384.0 / 32767.0);
        assert_eq!(value(32767, 1.0), 0.0);
        let byte = AxisInfo {
            minimum: 0,
            maximum: 255,
            ..whole
        };
        assert_eq!(axis_value(&byte, 128, 0.05), 0.0);
        assert_eq!(axis_value(&byte, 0, 0.05), 1.0);
        assert_eq!(axis_value(&byte, 255, 0.05), -1.0);
    }

    #[test]
    fn changes_of_axes_wait_for_each_other_and_the_state_is_repeated() {
        let mut stick = joystick(&settings());
        assert_eq!(stick.due_in(0), Some(Duration::from_millis(50)));
        assert!(!stick.handle(Event::Axis(0, 20_000), 10 * MS));
        assert_eq!(stick.due_in(10 * MS), Some(Duration::from_millis(1)));
        assert!(!stick.handle(Event::Axis(1, 20_000), 10 * MS + MS / 2));
        assert_eq!(stick.due_in(11 * MS), Some(Duration::ZERO));
        stick.set_published(11 * MS);
        assert_eq!(stick.due_in(12 * MS), Some(Duration::from_millis(49)));
        assert!(!stick.handle(Event::Axis(0, 20_000), 12 * MS));
        assert_eq!(stick.due_in(61 * MS), Some(Duration::ZERO), "no change");
        let mut at_once = joystick(&Settings {
            repeat_interval: None,
            coalesce_interval: Duration::ZERO,
            ..settings()
        });
        assert_eq!(at_once.due_in(0), None);
        assert!(at_once.handle(Event::Axis(0, 20_000), 0));
    }

    #[test]
    fn sticky_buttons_change_with_each_press() {
        let mut stick = joystick(&Settings {
            has_sticky_buttons: true,
            ..settings()
        });
        for (is_pressed, is_published, value) in [
            (true, true, 1),
            (false, false, 1),
            (true, true, 0),
            (false, false, 0),
        ] {
            assert_eq!(stick.handle(Event::Button(A, is_pressed), 0), is_published);
            assert_eq!(stick.button_values[1], value);
        }
    }
}
