//! Flags that select messages, services and actions.

use clap::Args;
use pteros::msg::schema::InterfaceKind;

/// `-m`, `-s`, `-a`; none of them selects all kinds.
#[derive(Clone, Copy, Debug, Args)]
pub struct InterfaceKindFlags {
    /// Only message types
    #[arg(short = 'm', long)]
    only_msgs: bool,
    /// Only service types
    #[arg(short = 's', long)]
    only_srvs: bool,
    /// Only action types
    #[arg(short = 'a', long)]
    only_actions: bool,
}

impl InterfaceKindFlags {
    /// The selected kinds in ROS 2's order.
    pub fn kinds(self) -> Vec<InterfaceKind> {
        let all = !(self.only_msgs || self.only_srvs || self.only_actions);
        [
            (InterfaceKind::Message, self.only_msgs),
            (InterfaceKind::Service, self.only_srvs),
            (InterfaceKind::Action, self.only_actions),
        ]
        .into_iter()
        .filter(|(_, chosen)| all || *chosen)
        .map(|(kind, _)| kind)
        .collect()
    }
}

/// The heading of a kind in `interface list`, also its JSON key.
pub fn heading(kind: InterfaceKind) -> &'static str {
    match kind {
        InterfaceKind::Message => "Messages",
        InterfaceKind::Service => "Services",
        InterfaceKind::Action => "Actions",
    }
}
