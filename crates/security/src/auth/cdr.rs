//! The subset of CDR that tokens need: numbers, strings and octets in either byte
//! order, aligned as in XCDR1 from the beginning of the buffer.

/// Encoder.
pub(super) struct CdrWriter {
    bytes: Vec<u8>,
    big: bool,
}

impl CdrWriter {
    pub fn new(big: bool) -> Self {
        Self {
            bytes: Vec::with_capacity(1024),
            big,
        }
    }

    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub fn number(&mut self, number: usize) {
        self.align(4);
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        self.raw(&if self.big {
            number.to_be_bytes()
        } else {
            number.to_le_bytes()
        });
    }

    pub fn long_number(&mut self, number: i64) {
        self.align(8);
        self.raw(&if self.big {
            number.to_be_bytes()
        } else {
            number.to_le_bytes()
        });
    }

    pub fn string(&mut self, text: &str) {
        self.number(text.len().saturating_add(1));
        self.raw(text.as_bytes());
        self.raw(&[0]);
    }

    pub fn octets(&mut self, octets: &[u8]) {
        self.number(octets.len());
        self.raw(octets);
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    pub fn align(&mut self, to: usize) {
        let length = self.bytes.len().next_multiple_of(to);
        self.bytes.resize(length, 0);
    }
}

/// Decoder; `None` if the input is too short or too large.
pub(super) struct CdrReader<'a> {
    whole: &'a [u8],
    at: usize,
    big: bool,
}

impl<'a> CdrReader<'a> {
    pub fn new(whole: &'a [u8], big: bool) -> Self {
        Self { whole, at: 0, big }
    }

    pub fn raw(&mut self, length: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(length)?;
        let bytes = self.whole.get(self.at..end)?;
        self.at = end;
        Some(bytes)
    }

    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.raw(N)?.try_into().ok()
    }

    pub fn number(&mut self) -> Option<usize> {
        self.at = self.at.checked_next_multiple_of(4)?;
        let bytes = self.array()?;
        let number = if self.big {
            u32::from_be_bytes(bytes)
        } else {
            u32::from_le_bytes(bytes)
        };
        usize::try_from(number).ok()
    }

    pub fn long_number(&mut self) -> Option<i64> {
        self.at = self.at.checked_next_multiple_of(8)?;
        let bytes = self.array()?;
        Some(if self.big {
            i64::from_be_bytes(bytes)
        } else {
            i64::from_le_bytes(bytes)
        })
    }

    /// A count of items that take at least four bytes each.
    pub fn count(&mut self, most: usize) -> Option<usize> {
        self.number().filter(|count| *count <= most)
    }

    pub fn string(&mut self) -> Option<String> {
        let length = self.number()?;
        let bytes = self.raw(length)?;
        let text = bytes.strip_suffix(&[0]).unwrap_or(bytes);
        String::from_utf8(text.to_vec()).ok()
    }

    pub fn octets(&mut self) -> Option<Vec<u8>> {
        let length = self.number()?;
        Some(self.raw(length)?.to_vec())
    }
}
