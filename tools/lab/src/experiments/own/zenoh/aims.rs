//! Aims of docs/measurements/zenoh.md as data, and their evaluation against a run.

use super::rows::{Kind, Row};
use crate::results::View;

/// At most so many times a peer's value, in every row to which the aim applies.
pub struct Aim {
    id: &'static str,
    ours: &'static str,
    peer: &'static str,
    factor: f64,
    applies: fn(&Kind) -> bool,
}

/// Pteros over Zenoh, with nothing beside it.
pub const OURS: &str = "pteros-zenoh-tcp";

/// In the order of the page. Two runs of the same program differ by a few percent, so
/// "equal" is 1.1, too.
pub const AIMS: [Aim; 3] = [
    Aim {
        id: "1",
        ours: OURS,
        peer: "zenoh-ros",
        factor: 1.1,
        applies: |_| true,
    },
    Aim {
        id: "2",
        ours: OURS,
        peer: "hiroz",
        factor: 1.0,
        applies: |_| true,
    },
    Aim {
        id: "3",
        ours: "pteros-zenoh",
        peer: "pteros",
        factor: 1.1,
        applies: |kind| !matches!(kind, Kind::Link { .. }),
    },
];

impl Aim {
    /// The row and the limit, the ratio, and whether it is met. `None` if a value is
    /// missing.
    pub fn evaluate(&self, row: &Row, view: &View) -> Option<(String, String, bool)> {
        if !(self.applies)(&row.kind) {
            return None;
        }
        let figure = row.main_figure();
        let value = |name: &str| view.value(name, &[("row", &row.name)], figure);
        let (ours, peer) = (value(self.ours)?, value(self.peer)?);
        // No traffic at all is no more than none.
        let ratio = if ours == peer { 1.0 } else { ours / peer };
        let Self { id, factor, .. } = self;
        let text = format!(
            "{id} {}: {figure} of {} ≤ {factor} × {}",
            row.name, self.ours, self.peer
        );
        Some((text, format!("{ratio:.2}"), ratio <= *factor))
    }
}
