//! Converts a serialized ROS 1 message to CDR by a plan. Every length is compared with
//! the remaining bytes, and the output is bounded by the input.

use super::definition::Count;
use super::plan::{
    Plan, SourceField, SourceKind, StructPlan, TargetCount, TargetField, TargetKind,
};

/// Little-endian CDR.
const ENCAPSULATION: [u8; 4] = [0, 1, 0, 0];
/// Limit of the output size, in multiples of the input. CDR has padding and terminators
/// that ROS 1 lacks. [`SPARE_BYTES`] are for fields that only ROS 2 has.
const GROWTH_MAX: usize = 8;
const SPARE_BYTES: usize = 1 << 20;
/// Limit of fields and elements read per input byte, some of them twice. [`SPARE_STEPS`]
/// are for those without bytes.
const STEPS_PER_BYTE: usize = 32;
const SPARE_STEPS: usize = 1 << 16;

/// Appends the message as CDR with its encapsulation header.
///
/// # Errors
/// The message does not fit its definition.
pub(super) fn convert(plan: &Plan, message: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
    out.extend(ENCAPSULATION);
    let start = out.len();
    let limit = message.len().saturating_mul(GROWTH_MAX);
    let mut run = Conversion {
        plan,
        input: Input {
            data: message,
            at: 0,
        },
        limit: start.saturating_add(limit).saturating_add(SPARE_BYTES),
        steps_left: message
            .len()
            .saturating_mul(STEPS_PER_BYTE)
            .saturating_add(SPARE_STEPS),
        start,
        out,
    };
    run.message(0)?;
    let left = message.len() - run.input.at.min(message.len());
    if left > 0 {
        return Err(format!("{left} bytes more than its definition says"));
    }
    Ok(())
}

struct Input<'a> {
    data: &'a [u8],
    at: usize,
}

impl<'a> Input<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], String> {
        let end = self.at.checked_add(count);
        let taken = end.and_then(|end| self.data.get(self.at..end));
        let taken = taken.ok_or("it ends before its definition does")?;
        self.at += count;
        Ok(taken)
    }

    fn length(&mut self) -> Result<usize, String> {
        let bytes = self.take(4)?.first_chunk().copied().unwrap_or_default();
        usize::try_from(u32::from_le_bytes(bytes)).map_err(|error| error.to_string())
    }

    fn count(&mut self, count: Count) -> Result<usize, String> {
        match count {
            Count::One => Ok(1),
            Count::Fixed(count) => Ok(count),
            Count::Variable => self.length(),
        }
    }
}

struct Conversion<'a> {
    plan: &'a Plan,
    input: Input<'a>,
    out: &'a mut Vec<u8>,
    /// Start of the output's alignment.
    start: usize,
    limit: usize,
    /// Remaining fields and elements. Elements may have no bytes, so the input alone does
    /// not end a loop.
    steps_left: usize,
}

impl<'a> Conversion<'a> {
    fn struct_plan(&self, index: usize) -> Result<&'a StructPlan, String> {
        let found = self.plan.structs.get(index);
        found.ok_or_else(|| "a plan that is not there".to_owned())
    }

    fn step(&mut self) -> Result<(), String> {
        let left = self.steps_left.checked_sub(1);
        self.steps_left = left.ok_or("it has far more elements than bytes")?;
        Ok(())
    }

    fn message(&mut self, index: usize) -> Result<(), String> {
        self.step()?;
        if self.out.len() > self.limit {
            return Err("it would be too large in ROS 2".to_owned());
        }
        let plan = self.struct_plan(index)?;
        if plan.is_in_order {
            self.message_in_order(plan)
        } else {
            self.message_in_any_order(plan)
        }
    }

    fn message_in_order(&mut self, plan: &'a StructPlan) -> Result<(), String> {
        let mut next = 0;
        for target in &plan.target {
            match target.from {
                None => self.default(target)?,
                Some(from) => {
                    for skipped in plan.source.get(next..from.field).unwrap_or_default() {
                        self.skip(skipped)?;
                    }
                    let source = plan.source.get(from.field);
                    self.field(source.ok_or("a field that is not there")?, target)?;
                    next = from.field + 1;
                }
            }
        }
        for skipped in plan.source.get(next..).unwrap_or_default() {
            self.skip(skipped)?;
        }
        Ok(())
    }

    fn message_in_any_order(&mut self, plan: &'a StructPlan) -> Result<(), String> {
        let mut places = Vec::with_capacity(plan.source.len());
        for source in &plan.source {
            places.push(self.input.at);
            self.skip(source)?;
        }
        let end = self.input.at;
        for target in &plan.target {
            let Some(from) = target.from else {
                self.default(target)?;
                continue;
            };
            let (Some(source), Some(place)) = (plan.source.get(from.field), places.get(from.field))
            else {
                return Err("a field that is not there".to_owned());
            };
            self.input.at = *place;
            match (from.inner, source.kind) {
                (Some(inner), SourceKind::Struct(index)) => {
                    let nested = self.struct_plan(index)?;
                    for skipped in nested.source.get(..inner).unwrap_or_default() {
                        self.skip(skipped)?;
                    }
                    let source = nested.source.get(inner);
                    self.field(source.ok_or("a field that is not there")?, target)?;
                }
                _ => self.field(source, target)?,
            }
        }
        self.input.at = end;
        Ok(())
    }

    fn skip(&mut self, source: &SourceField) -> Result<(), String> {
        self.step()?;
        let count = self.input.count(source.count)?;
        let fixed = match source.kind {
            SourceKind::Fixed(bytes) => Some(bytes),
            SourceKind::String => None,
            SourceKind::Struct(index) => self.struct_plan(index)?.fixed_bytes,
        };
        if let Some(bytes) = fixed {
            let all = bytes.checked_mul(count);
            self.input.take(all.ok_or("an array that is too long")?)?;
            return Ok(());
        }
        for _ in 0..count {
            self.step()?;
            match source.kind {
                SourceKind::Struct(index) => {
                    for field in &self.struct_plan(index)?.source {
                        self.skip(field)?;
                    }
                }
                _ => {
                    let length = self.input.length()?;
                    self.input.take(length)?;
                }
            }
        }
        Ok(())
    }

    fn field(&mut self, source: &SourceField, target: &TargetField) -> Result<(), String> {
        self.step()?;
        let count = self.input.count(source.count)?;
        if let TargetCount::Sequence(bound) = target.count {
            if bound > 0 && count as u64 > bound {
                return Err(format!("a sequence of {count}, and ROS 2 allows {bound}"));
            }
            self.length(count)?;
        }
        let numbers = |bytes: usize| bytes.checked_mul(count).ok_or("an array that is too long");
        match target.kind {
            TargetKind::Number(bytes) => {
                let taken = self.input.take(numbers(bytes)?)?;
                self.put(taken, bytes);
            }
            TargetKind::Stamp => {
                let taken = self.input.take(numbers(8)?)?;
                self.put(taken, 4);
            }
            TargetKind::LogLevel => {
                let level = self.input.take(1)?.first().copied().unwrap_or_default();
                let known = level.is_power_of_two() && level <= 16;
                let translated = if known {
                    10 * (level.trailing_zeros() as u8 + 1)
                } else {
                    level
                };
                self.out.push(translated);
            }
            TargetKind::String => {
                for _ in 0..count {
                    let length = self.input.length()?;
                    let text = self.input.take(length)?;
                    self.length(length + 1)?;
                    self.out.extend(text);
                    self.out.push(0);
                }
            }
            TargetKind::Struct(index) => {
                for _ in 0..count {
                    self.message(index)?;
                }
            }
        }
        Ok(())
    }

    /// Writes zero, an empty value, or a message of such values.
    fn default(&mut self, target: &TargetField) -> Result<(), String> {
        let count = match target.count {
            TargetCount::One => 1,
            TargetCount::Fixed(count) => count,
            TargetCount::Sequence(_) => return self.length(0),
        };
        for _ in 0..count {
            match target.kind {
                TargetKind::Number(bytes) => self.put(&[0; 8][..bytes.min(8)], bytes),
                TargetKind::Stamp => self.put(&[0; 8], 4),
                TargetKind::LogLevel => self.out.push(0),
                TargetKind::String => {
                    self.length(1)?;
                    self.out.push(0);
                }
                TargetKind::Struct(index) => self.message(index)?,
            }
        }
        Ok(())
    }

    fn align(&mut self, bytes: usize) {
        let at = self.out.len() - self.start;
        let padded = self.start + at.next_multiple_of(bytes.max(1));
        self.out.resize(padded, 0);
    }

    /// Appends numbers of one size. An empty array has no padding.
    fn put(&mut self, values: &[u8], alignment: usize) {
        if !values.is_empty() {
            self.align(alignment);
            self.out.extend(values);
        }
    }

    fn length(&mut self, length: usize) -> Result<(), String> {
        let length = u32::try_from(length).map_err(|_| "a text that is too long")?;
        self.put(&length.to_le_bytes(), 4);
        Ok(())
    }
}
