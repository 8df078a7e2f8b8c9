//! Player: publishes the messages of a bag with their recorded spacing.
//!
//! One thread waits on the steady clock for each message's time and publishes it. Another
//! one reads ahead. The thread that spins the node serves the services, which change the
//! shared state and wake the player. Messages are published serialized, as recorded.

mod options;
mod outputs;
mod playback;
mod read_ahead;
mod services;
mod state;
mod stepping;

use std::collections::VecDeque;
use std::sync::Arc;

use pteros::qos::QosProfile;
use pteros::{NamedQosExt, Node};

pub use options::{
    ClockOptions, LastKnown, PlaybackProgress, PlaybackSummary, PlayedPart, PlayerOptions,
    RequestSource, StepOptions,
};

use crate::error::BagError;
use crate::reader::BagReader;
use outputs::Outputs;
use playback::{Playback, SplitReport};
use services::Services;
use state::{Burst, PlayerState, Shared};
use stepping::Stepper;

/// Plays a bag on its own thread, see [`Player::start`].
///
/// It offers `~/pause`, `~/resume`, `~/toggle_paused`, `~/is_paused`, `~/play_next`,
/// `~/burst`, `~/play`, `~/get_rate`, `~/set_rate`, `~/seek` and `~/stop`, as rosbag2's
/// player, and publishes `events/read_split`.
///
/// With [`PlayerOptions::step`], replay is deterministic: the next message is released
/// after the given nodes have returned from their callbacks for the previous one. Their
/// outputs are equal in each run, if the nodes read no clock but `/clock`.
///
/// ```no_run
/// use pteros::prelude::*;
/// use pteros_bag::{BagReader, Player, PlayerOptions};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let context = Context::new()?;
/// let node = context.create_node("player")?;
/// let executor = SingleThreadedExecutor::new(&context);
/// executor.add_node(&node)?;
/// let bag = BagReader::open("my_bag".as_ref())?;
/// let player = Player::start(&node, bag, PlayerOptions::default())?;
/// executor.spin_until(|| player.summary().is_some(), std::time::Duration::from_secs(3600));
/// # Ok(())
/// # }
/// ```
///
/// Dropping it ends playback.
pub struct Player {
    shared: Arc<Shared>,
    skipped: Vec<String>,
    _services: Services,
}

impl Drop for Player {
    fn drop(&mut self) {
        self.end();
    }
}

impl Player {
    /// Creates a publisher per topic and starts playback.
    ///
    /// # Errors
    /// No topic is selected, a rate is not positive, or an endpoint cannot be created.
    pub fn start(node: &Node, bag: BagReader, options: PlayerOptions) -> Result<Self, BagError> {
        if !(options.rate.is_finite() && options.rate > 0.0) {
            return Err(BagError::Invalid(format!(
                "rate {}: the rate is a number above 0, for example 0.5",
                options.rate
            )));
        }
        if let Some(rate) = options.clock.rate
            && !(rate.is_finite() && rate > 0.0)
        {
            return Err(BagError::Invalid(format!(
                "clock rate {rate}: the rate is a number of Hertz above 0, for example 40"
            )));
        }
        // The player's thread finds publish times, because that reads the whole bag.
        let span = bag.span().unwrap_or((0, 0));
        let is_paused = options.start_paused || options.burst.is_some();
        let mut state = PlayerState::new(is_paused, options.rate, span);
        if let Some(count) = options.burst {
            state.begin_burst(Burst::new(count, None));
        }
        let shared = Arc::new(Shared::new(state));
        let mut outputs = Outputs::create(node, &bag, &options)?;
        let clock = if options.clock.is_on() {
            Some(node.create_publisher("/clock".qos(QosProfile::default()))?)
        } else {
            None
        };
        let stepper = options.step.as_ref();
        let stepper = stepper.map(|step| Stepper::new(node, step)).transpose()?;
        let services = Services::new(node, &shared)?;
        let splits = SplitReport::new(node, &bag)?;
        let skipped = std::mem::take(&mut outputs.skipped);
        let mut playback = Playback {
            context: node.context().clone(),
            known_problems: bag.problems().len(),
            bag,
            options,
            outputs,
            clock,
            splits,
            stepper,
            shared: shared.clone(),
            next_tick: None,
            is_delay_noted: false,
            next_step_tick: None,
            revision: 0,
            pending: VecDeque::new(),
            summary: PlaybackSummary::default(),
        };
        let spawned = node
            .context()
            .spawn_thread("bag_player", move || playback.run());
        spawned
            .map_err(|error| BagError::Invalid(format!("starting the player thread: {error}")))?;
        Ok(Self {
            shared,
            skipped,
            _services: services,
        })
    }

    /// Topics that are not played, with the reason.
    pub fn skipped(&self) -> &[String] {
        &self.skipped
    }

    /// Totals of the playback; `None` while it plays, or waits for `~/play`.
    pub fn summary(&self) -> Option<PlaybackSummary> {
        self.shared.lock().summary.clone()
    }

    /// Current position. Never blocks. With [`Sent`](crate::MessageOrder::Sent), times
    /// are log times until the player has found the publish times.
    pub fn progress(&self) -> PlaybackProgress {
        self.shared.lock().progress()
    }

    /// Pauses or resumes.
    pub fn set_paused(&self, is_paused: bool) {
        self.shared.change(|state| state.set_paused(is_paused));
    }

    /// Whether playback is paused by `~/pause` or [`set_paused`](Self::set_paused).
    pub fn is_paused(&self) -> bool {
        self.shared.lock().is_paused
    }

    /// Publishes the next message of a paused player. Returns false if it plays, or has
    /// ended.
    pub fn play_next(&self) -> bool {
        self.shared.change(PlayerState::play_next)
    }

    /// Playback rate; 1 is as recorded.
    pub fn rate(&self) -> f64 {
        self.shared.lock().rate
    }

    /// Sets the playback rate. Returns false if it is not a number above 0.
    pub fn set_rate(&self, rate: f64) -> bool {
        self.shared.change(|state| state.set_rate(rate))
    }

    /// Stops playback at the next message. With [`PlayerOptions::stay`], the player then
    /// waits for `~/play`.
    pub fn stop(&self) {
        self.shared.change(PlayerState::stop);
    }

    /// Stops playback at the next message, and ends the player also with
    /// [`PlayerOptions::stay`].
    pub fn end(&self) {
        self.shared.change(|state| {
            state.is_stopped = true;
            state.is_ended = true;
        });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use pteros::{Context, ContextOptions};

    use super::*;
    use crate::topic::BagTopic;
    use crate::writer::{BagOptions, BagWriter};
    use pteros_test_support::folder::Folder;

    /// Regression on a loaded host: a requested step outlived the resumption, and was
    /// taken in the next pause.
    #[test]
    fn a_step_before_a_resumption_is_the_first_message() {
        let folder = Folder::absent("step");
        let mut writer = BagWriter::create(&folder, BagOptions::default()).unwrap();
        let topic = BagTopic {
            name: "/a".into(),
            type_name: "std_msgs/msg/Empty".into(),
            ..BagTopic::default()
        };
        let channel = writer.add_topic(topic).unwrap();
        // By a millisecond, and by hours.
        for time in [1, 1_000_001, 10_000_000_000_000] {
            writer.write(channel, time, time, &[0, 1, 0, 0, 0]).unwrap();
        }
        writer.finish(&BTreeMap::new()).unwrap();
        let domain = 20 + std::process::id() % 80;
        let context = Context::with_options(ContextOptions::local(domain)).unwrap();
        let node = context.create_node("player").unwrap();
        let options = PlayerOptions {
            start_paused: true,
            ..PlayerOptions::default()
        };
        let bag = BagReader::open(&folder).unwrap();
        let player = Player::start(&node, bag, options).unwrap();
        player.shared.change(|state| {
            assert!(state.play_next());
            state.set_paused(false);
        });
        let end = Shared::now() + Duration::from_secs(20);
        while player.progress().time < 1_000_001 {
            assert!(Shared::now() < end, "the second message is not played");
            std::thread::yield_now();
        }
        assert_eq!(player.shared.lock().steps, 0);
        player.end();
    }
}
