//! Plain types: structs whose memory is their CDR body, so that a message can be
//! loaned (loaned message, zero-copy).
//!
//! A plain type has only numbers and booleans, at most in arrays of fixed size, each at
//! the offset that it has in little-endian XCDR1. Sequences, strings, and structs whose
//! gaps differ from CDR's are not plain: such messages are serialized.

use std::ops::Range;

use crate::cursor::HEADER_BYTES;
use crate::program::{Op, Program};

/// Gaps, and ranges of booleans, of one type. A type with more is not plain, because they
/// are visited for each message.
const RANGES_MAX: usize = 256;

/// Alignment of loaned memory, bytes.
pub const BODY_ALIGN: usize = 64;

/// Bytes of a plain struct that are not numbers.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PlainLayout {
    /// Size of the struct, bytes.
    pub size_of: usize,
    /// Its alignment, bytes.
    align: usize,
    /// Bytes between members, and after the last one.
    gaps: Vec<Range<usize>>,
    /// Booleans, whose bytes must be 0 or 1.
    bools: Vec<Range<usize>>,
}

/// Position in a struct, in the order of CDR.
struct Walk {
    layout: PlainLayout,
    position: usize,
}

impl PlainLayout {
    /// The layout of a type, if it is plain on this machine.
    pub fn of(program: &Program) -> Option<Self> {
        if cfg!(target_endian = "big") {
            return None;
        }
        let mut walk = Walk {
            layout: Self {
                align: 1,
                size_of: program.size_of,
                ..Self::default()
            },
            position: 0,
        };
        walk.visit(program, 0)?;
        if walk.position == 0 {
            return None;
        }
        walk.skip_to(program.size_of)?;
        let layout = walk.layout;
        let is_aligned = layout.align <= BODY_ALIGN && layout.size_of.is_multiple_of(layout.align);
        let ranges = layout.gaps.len() + layout.bools.len();
        (is_aligned && ranges <= RANGES_MAX).then_some(layout)
    }

    /// Zeroes the gaps, because their bytes may be of an earlier message.
    pub fn clear_gaps(&self, body: &mut [u8]) {
        for gap in &self.gaps {
            if let Some(bytes) = body.get_mut(gap.clone()) {
                bytes.fill(0);
            }
        }
    }

    /// The struct in a payload. `None` if the payload has to be decoded. Then its byte
    /// order or representation differs, it is too short or unaligned, or a boolean is
    /// neither 0 nor 1.
    pub fn view<'p>(&self, payload: &'p [u8]) -> Option<&'p [u8]> {
        let body = match payload.split_first_chunk::<HEADER_BYTES>()? {
            ([0, 1, ..], body) => body.get(..self.size_of)?,
            _ => return None,
        };
        let is_aligned = body.as_ptr().addr().is_multiple_of(self.align);
        let mut bools = self
            .bools
            .iter()
            .filter_map(|range| body.get(range.clone()));
        (is_aligned && bools.all(|bytes| bytes.iter().all(|byte| *byte <= 1))).then_some(body)
    }
}

impl Walk {
    fn visit(&mut self, program: &Program, base: usize) -> Option<()> {
        for op in &program.ops {
            match op {
                Op::Numbers {
                    offset,
                    width,
                    count,
                } if *count > 0 => {
                    self.layout.align = self.layout.align.max(*width);
                    if self.position.next_multiple_of(*width) != base + offset {
                        return None;
                    }
                    self.skip_to(base + offset)?;
                    self.position += width * count;
                }
                Op::Bools { offset, count } if *count > 0 => {
                    if self.position != base + offset {
                        return None;
                    }
                    self.position += count;
                    add(&mut self.layout.bools, base + offset..self.position)?;
                }
                Op::Numbers { .. } | Op::Bools { .. } => {}
                Op::MessageArray {
                    offset,
                    count,
                    program,
                } => {
                    for at in 0..*count {
                        self.visit(program, base + offset + at * program.size_of)?;
                    }
                }
                Op::Strings { .. }
                | Op::NumberSequence { .. }
                | Op::BoolSequence { .. }
                | Op::StringSequence { .. }
                | Op::MessageSequence { .. } => return None,
            }
        }
        Some(())
    }

    fn skip_to(&mut self, offset: usize) -> Option<()> {
        if offset > self.position {
            add(&mut self.layout.gaps, self.position..offset)?;
            self.position = offset;
        }
        (offset == self.position).then_some(())
    }
}

/// Adds a range, or extends the last one that it continues.
fn add(ranges: &mut Vec<Range<usize>>, range: Range<usize>) -> Option<()> {
    match ranges.last_mut() {
        Some(last) if last.end == range.start => last.end = range.end,
        _ => ranges.push(range),
    }
    (ranges.len() <= RANGES_MAX).then_some(())
}
