//! The player as a component.

use pteros::component::{Component, ComponentError};
use pteros::prelude::*;
use pteros_bag::{BagReader, ClockOptions, PlayedPart, PlayerOptions};

use crate::parameters::{duration, filter, folder};

/// Plays a bag, and then waits for `~/play`. It offers the services of rosbag2's
/// player.
///
/// Parameters:
/// - `storage.uri`: the bag.
/// - `play.rate`, `play.loop`, `play.start_paused`, `play.topics`, `play.regex` and others
///   of `pteros bag play`.
/// - `play.clock_publish_frequency`, `play.clock_publish_on_topic_publish`.
/// - `play.start_offset.sec` and `.nsec`, `play.delay.sec` and `.nsec`.
pub struct Player {
    node: Node,
    _player: pteros_bag::Player,
}

impl Component for Player {
    fn new(context: &Context, options: NodeOptions) -> Result<Self, ComponentError> {
        let node = context.create_node(options.name("rosbag2_player"))?;
        let bag = BagReader::open(&folder(&node)?)?;
        let log = node.logger();
        for problem in bag.problems() {
            pteros::warn!(log, "{problem}");
        }
        let player = pteros_bag::Player::start(&node, bag, player_options(&node)?)?;
        for skipped in player.skipped() {
            pteros::warn!(log, "{skipped}");
        }
        Ok(Self {
            node,
            _player: player,
        })
    }

    fn node(&self) -> &Node {
        &self.node
    }
}

fn player_options(node: &Node) -> Result<PlayerOptions, ComponentError> {
    let flag = |name: &str| -> Result<bool, ComponentError> {
        Ok(node.declare_parameter(name, false)?.value())
    };
    let frequency = node
        .declare_parameter("play.clock_publish_frequency", 0.0)?
        .value();
    Ok(PlayerOptions {
        rate: node.declare_parameter("play.rate", 1.0)?.value(),
        repeat: flag("play.loop")?,
        start_paused: flag("play.start_paused")?,
        filter: filter(node, "play", true)?,
        clock: ClockOptions {
            rate: (frequency > 0.0).then_some(frequency),
            all_topics: flag("play.clock_publish_on_topic_publish")?,
            ..ClockOptions::default()
        },
        part: PlayedPart {
            start_offset: duration(node, "play.start_offset")?,
            ..PlayedPart::default()
        },
        delay: duration(node, "play.delay")?,
        stay: true,
        ..PlayerOptions::default()
    })
}
