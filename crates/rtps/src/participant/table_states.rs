//! Which tables of remote participants and endpoints were reported as full.

/// Whether the tables are full, so that it is reported once.
#[derive(Default)]
pub(super) struct TableStates {
    pub(super) participants_full: bool,
    pub(super) endpoints_full: bool,
}
