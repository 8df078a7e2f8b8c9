//! Node key: identifies a node within its context.

/// Key of a node of this context.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct NodeKey(u64);

impl NodeKey {
    pub(crate) fn new(number: u64) -> Self {
        Self(number)
    }

    /// As a number, for traces.
    pub(crate) fn to_u32(self) -> u32 {
        u32::try_from(self.0).unwrap_or(u32::MAX)
    }
}
