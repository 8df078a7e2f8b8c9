//! Upper bound of the serialized size of a bounded type.

use crate::cursor::HEADER_BYTES;
use crate::program::{Op, Program, UNBOUNDED};

/// A position in CDR: the highest that a message can have.
#[derive(Clone, Copy)]
struct Position {
    bytes: usize,
    /// Whether every message has this position. Otherwise the padding before the next
    /// number is not known.
    is_exact: bool,
}

impl Program {
    /// The largest size of a message in bytes, header included; `None` if a member is
    /// unbounded. A few bytes too large where padding depends on the content.
    pub fn serialized_len_max(&self) -> Option<usize> {
        let end = Position {
            bytes: 0,
            is_exact: true,
        };
        let end = self.end_max(end)?;
        Some(HEADER_BYTES + end.bytes.max(1))
    }

    /// The fewest bytes of a message inside another one, at least one.
    pub(super) fn wire_bytes_min(&self) -> usize {
        /// Of a string or sequence: its length.
        const COUNT: usize = 4;
        let of_op = |op: &Op| match op {
            Op::Numbers { width, count, .. } => width.saturating_mul(*count),
            Op::Bools { count, .. } => *count,
            Op::Strings { count, .. } => count.saturating_mul(COUNT),
            Op::NumberSequence { .. }
            | Op::BoolSequence { .. }
            | Op::StringSequence { .. }
            | Op::MessageSequence { .. } => COUNT,
            Op::MessageArray { count, program, .. } => {
                count.saturating_mul(program.wire_bytes_min())
            }
        };
        let bytes = self.ops.iter().map(of_op);
        bytes.fold(0, usize::saturating_add).max(1)
    }

    fn end_max(&self, mut at: Position) -> Option<Position> {
        for op in &self.ops {
            at = match op {
                Op::Numbers { width, count, .. } => at.numbers(*width, *count)?,
                Op::Bools { count, .. } => at.numbers(1, *count)?,
                Op::Strings {
                    count, wide, bound, ..
                } => at.repeated(*count, |at| at.string(*wide, *bound))?,
                Op::NumberSequence {
                    width, sequence, ..
                } => at
                    .count(sequence.bound)?
                    .numbers(*width, sequence.bound)?
                    .varying(),
                Op::BoolSequence { sequence, .. } => at
                    .count(sequence.bound)?
                    .numbers(1, sequence.bound)?
                    .varying(),
                Op::StringSequence {
                    wide,
                    bound,
                    sequence,
                    ..
                } => at
                    .count(sequence.bound)?
                    .repeated(sequence.bound, |at| at.string(*wide, *bound))?
                    .varying(),
                Op::MessageArray { count, program, .. } => {
                    at.repeated(*count, |at| program.end_max(at))?
                }
                Op::MessageSequence {
                    sequence, program, ..
                } => at
                    .count(sequence.bound)?
                    .repeated(sequence.bound, |at| program.end_max(at))?
                    .varying(),
            };
        }
        Some(at)
    }
}

impl Position {
    fn numbers(self, width: usize, count: usize) -> Option<Self> {
        if count == 0 {
            return Some(self);
        }
        let begin = if self.is_exact {
            self.bytes.checked_next_multiple_of(width)?
        } else {
            self.bytes.checked_add(width - 1)?
        };
        let bytes = begin.checked_add(width.checked_mul(count)?)?;
        Some(Self { bytes, ..self })
    }

    /// The length of a sequence or string.
    fn count(self, bound: usize) -> Option<Self> {
        if bound == UNBOUNDED {
            return None;
        }
        self.numbers(4, 1)
    }

    fn string(self, wide: bool, bound: usize) -> Option<Self> {
        let after = self.count(bound)?;
        let units = if wide {
            after.numbers(4, bound)?
        } else {
            after.numbers(1, bound.checked_add(1)?)?
        };
        Some(units.varying())
    }

    fn repeated(self, count: usize, each: impl Fn(Self) -> Option<Self>) -> Option<Self> {
        let mut at = self;
        for _ in 0..count {
            at = each(at)?;
        }
        Some(at)
    }

    fn varying(self) -> Self {
        Self {
            is_exact: false,
            ..self
        }
    }
}
