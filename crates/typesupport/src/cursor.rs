//! Cursors over CDR (XTypes 1.3 §7.4.3): one that counts and writes XCDR1, one that
//! reads XCDR1 and XCDR2. Alignment counts from the end of the encapsulation header.

use std::mem::MaybeUninit;

use crate::failure::{Failure, Outcome};

/// Bytes of the encapsulation header.
pub(super) const HEADER_BYTES: usize = 4;

/// Writes little-endian CDR into memory of the right size, or counts the bytes. It
/// writes each byte up to its position, padding included.
pub(super) struct Writer<'m> {
    /// `None`: only counts.
    memory: Option<&'m mut [MaybeUninit<u8>]>,
    /// After the header.
    position: usize,
}

impl<'m> Writer<'m> {
    pub(super) fn counting() -> Self {
        Self {
            memory: None,
            position: 0,
        }
    }

    /// Writes behind a header, which the caller has written.
    pub(super) fn into(memory: &'m mut [MaybeUninit<u8>]) -> Self {
        Self {
            memory: Some(memory),
            position: 0,
        }
    }

    pub(super) fn position(&self) -> usize {
        self.position
    }

    /// Reserves aligned bytes. Padding is zero.
    fn next(&mut self, width: usize, bytes: usize) -> Outcome<Option<&mut [MaybeUninit<u8>]>> {
        let begin = self.position.next_multiple_of(width);
        let end = begin + bytes;
        let padding = self.position..begin;
        self.position = end;
        let Some(memory) = &mut self.memory else {
            return Ok(None);
        };
        let too_small = || Failure::error("the message changed while it was published");
        let padding = memory.get_mut(padding).ok_or_else(too_small)?;
        padding.fill(MaybeUninit::new(0));
        memory.get_mut(begin..end).map(Some).ok_or_else(too_small)
    }

    /// Copies numbers.
    ///
    /// # Safety
    /// `from` has `count` numbers of `width` bytes.
    pub(super) unsafe fn numbers(
        &mut self,
        from: *const u8,
        width: usize,
        count: usize,
    ) -> Outcome {
        if count == 0 {
            return Ok(());
        }
        if let Some(to) = self.next(width, width * count)? {
            // SAFETY: as for this function; the memory is ours alone.
            unsafe {
                to.as_mut_ptr()
                    .copy_from_nonoverlapping(from.cast(), to.len())
            };
        }
        Ok(())
    }

    pub(super) fn u8(&mut self, value: u8) -> Outcome {
        if let Some([to]) = self.next(1, 1)? {
            to.write(value);
        }
        Ok(())
    }

    pub(super) fn count(&mut self, value: usize) -> Outcome {
        let value = u32::try_from(value)
            .map_err(|_| Failure::error("a sequence has more than 2^32 - 1 elements"))?;
        if let Some(to) = self.next(4, 4)? {
            to.write_copy_of_slice(&value.to_le_bytes());
        }
        Ok(())
    }
}

/// Reads CDR of either byte order and representation.
pub(super) struct Reader<'p> {
    payload: &'p [u8],
    position: usize,
    is_big_endian: bool,
    is_xcdr2: bool,
}

impl<'p> Reader<'p> {
    /// Reads the header.
    pub(super) fn new(payload: &'p [u8]) -> Outcome<Self> {
        let header = payload.first_chunk::<HEADER_BYTES>();
        // The delimited encoding of XCDR2 is that of appendable types. ROS 2 has none.
        let (is_xcdr2, is_big_endian) = match header {
            Some([0, 1, ..]) => (false, false),
            Some([0, 0, ..]) => (false, true),
            Some([0, 7, ..]) => (true, false),
            Some([0, 6, ..]) => (true, true),
            _ => {
                return Err(Failure::undecodable(format!(
                    "a message of {} bytes has no CDR header that ROS 2 uses",
                    payload.len()
                )));
            }
        };
        Ok(Self {
            payload: payload.get(HEADER_BYTES..).unwrap_or_default(),
            position: 0,
            is_big_endian,
            is_xcdr2,
        })
    }

    /// Enters an array or sequence of strings or messages. XCDR2 puts its size before
    /// it (DHEADER, XTypes 1.3 §7.4.3.5), which the types make redundant.
    pub(super) fn begin_collection(&mut self) -> Outcome {
        if self.is_xcdr2 {
            self.u32()?;
        }
        Ok(())
    }

    pub(super) fn remaining(&self) -> usize {
        self.payload.len().saturating_sub(self.position)
    }

    fn next(&mut self, width: usize, bytes: usize) -> Outcome<&'p [u8]> {
        let align = if self.is_xcdr2 { width.min(4) } else { width };
        let begin = self.position.next_multiple_of(align);
        let end = begin
            .checked_add(bytes)
            .filter(|end| *end <= self.payload.len());
        let Some(end) = end else {
            return Err(Failure::undecodable(format!(
                "a message ends at byte {}, where {bytes} more were expected",
                self.payload.len()
            )));
        };
        self.position = end;
        Ok(self.payload.get(begin..end).unwrap_or_default())
    }

    /// Copies numbers.
    ///
    /// # Safety
    /// `to` has space for `count` numbers of `width` bytes.
    pub(super) unsafe fn numbers(&mut self, to: *mut u8, width: usize, count: usize) -> Outcome {
        if count == 0 {
            return Ok(());
        }
        let bytes = width.saturating_mul(count);
        let from = self.next(width, bytes)?;
        // SAFETY: as for this function.
        unsafe { to.copy_from_nonoverlapping(from.as_ptr(), bytes) };
        if self.is_big_endian && width > 1 {
            // SAFETY: as for this function.
            let to = unsafe { std::slice::from_raw_parts_mut(to, bytes) };
            to.chunks_exact_mut(width).for_each(<[u8]>::reverse);
        }
        Ok(())
    }

    pub(super) fn u8(&mut self) -> Outcome<u8> {
        Ok(self.next(1, 1)?.first().copied().unwrap_or(0))
    }

    pub(super) fn bool(&mut self) -> Outcome<bool> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            value => Err(Failure::undecodable(format!(
                "the boolean before byte {} is {value}, not 0 or 1",
                self.position
            ))),
        }
    }

    pub(super) fn u32(&mut self) -> Outcome<u32> {
        let bytes = self.next(4, 4)?;
        let bytes = bytes.first_chunk().copied().unwrap_or_default();
        Ok(if self.is_big_endian {
            u32::from_be_bytes(bytes)
        } else {
            u32::from_le_bytes(bytes)
        })
    }

    pub(super) fn bytes(&mut self, count: usize) -> Outcome<&'p [u8]> {
        self.next(1, count)
    }

    /// Reads the length of a sequence. Each element takes at least `element_bytes_min`,
    /// so a wrong length allocates at most the size of the message.
    pub(super) fn count(&mut self, element_bytes_min: usize, bound: usize) -> Outcome<usize> {
        let count = self.u32()? as usize;
        if count > bound {
            return Err(Failure::undecodable(format!(
                "a sequence has {count} elements, more than its bound of {bound}"
            )));
        }
        if count.saturating_mul(element_bytes_min) > self.remaining() {
            return Err(Failure::undecodable(format!(
                "a sequence claims {count} elements, but {} bytes are left",
                self.remaining()
            )));
        }
        Ok(count)
    }
}
