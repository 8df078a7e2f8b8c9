//! Inline QoS: parameters that travel with one change (RTPS 2.5 §8.7,
//! §9.6.4).

use crate::stats::Tally;
use alloc::vec::Vec;

use super::number_set::write_sequence;
use super::parameter::{write_parameter, write_sentinel};
use super::{Cursor, Parameters, WireError, pid};
use crate::content_filter::{self, FilterSignature};
use crate::history::ChangeKind;
use crate::id::Guid;
use crate::mark::Mark;
use crate::seq::{SampleIdentity, SequenceNumber};

/// What a change did to its instance (§9.6.4.9). Always big endian.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct StatusInfo(pub u32);

impl StatusInfo {
    /// The instance is gone.
    pub const DISPOSED: Self = Self(1);
    /// The writer no longer writes the instance.
    pub const UNREGISTERED: Self = Self(2);
    /// Both.
    pub const DISPOSED_UNREGISTERED: Self = Self(3);
    /// A content filter of the writer's side says no.
    pub const FILTERED: Self = Self(4);

    /// Whether the disposed bit is set.
    pub const fn is_disposed(self) -> bool {
        self.0 & 1 != 0
    }

    /// Whether the unregistered bit is set.
    pub const fn is_unregistered(self) -> bool {
        self.0 & 2 != 0
    }
}

/// A view of the inline QoS of one change; empty when it has none. Values are
/// looked for when asked.
#[derive(Clone, Copy, Debug)]
pub struct InlineQos<'a> {
    parameters: Parameters<'a>,
}

impl Default for InlineQos<'_> {
    fn default() -> Self {
        Self {
            parameters: Parameters::empty(),
        }
    }
}

impl PartialEq for InlineQos<'_> {
    fn eq(&self, other: &Self) -> bool {
        let ours = self.parameters.iter().map(|p| (p.id, p.value.rest()));
        ours.eq(other.parameters.iter().map(|p| (p.id, p.value.rest())))
    }
}

impl<'a> InlineQos<'a> {
    /// Checks the list and moves past it.
    pub fn parse(at: &mut Cursor<'a>) -> Result<Self, WireError> {
        Ok(Self {
            parameters: Parameters::parse(at)?,
        })
    }

    /// All parameters.
    pub fn parameters(&self) -> Parameters<'a> {
        self.parameters
    }

    /// Whether the change is a disposal or unregistration.
    pub fn status_info(&self) -> Option<StatusInfo> {
        let mut value = self.parameters.find(pid::STATUS_INFO)?;
        Some(StatusInfo(u32::from_be_bytes(value.array().ok()?)))
    }

    /// What the change says about its instance.
    pub fn change_kind(&self) -> ChangeKind {
        let status = self.status_info().unwrap_or_default();
        match (status.is_disposed(), status.is_unregistered()) {
            (false, false) => ChangeKind::Alive,
            (true, false) => ChangeKind::Disposed,
            (false, true) => ChangeKind::Unregistered,
            (true, true) => ChangeKind::DisposedUnregistered,
        }
    }

    /// The hash, or the short form, of the instance's key.
    pub fn key_hash(&self) -> Option<[u8; 16]> {
        self.parameters.find(pid::KEY_HASH)?.array().ok()
    }

    /// The sample this one answers, from the standard parameter or from Fast
    /// DDS's older one.
    pub fn related_sample_identity(&self) -> Option<SampleIdentity> {
        let mut value = self
            .parameters
            .find(pid::RELATED_SAMPLE_IDENTITY)
            .or_else(|| self.parameters.find(pid::LEGACY_RELATED_SAMPLE_IDENTITY))?;
        Some(SampleIdentity {
            writer: value.guid().ok()?,
            sequence: value.sequence().ok()?,
        })
    }

    /// The sample that was first written so, when its present writer passes it
    /// on or wrote it in an earlier life (§8.7.9).
    pub fn original_writer_info(&self) -> Option<SampleIdentity> {
        let mut value = self.parameters.find(pid::ORIGINAL_WRITER_INFO)?;
        Some(SampleIdentity {
            writer: value.guid().ok()?,
            sequence: value.sequence().ok()?,
        })
    }

    /// What a filter named by its signature said of the change, if its writer
    /// applied it.
    pub fn filter_result(&self, signature: &FilterSignature) -> Option<bool> {
        let value = self.parameters.find(pid::CONTENT_FILTER_INFO)?;
        content_filter::result_of(value, signature)
    }

    /// Whether the change is directed at readers of which `reader` is none; it
    /// then counts as filtered (§8.7.7). A change that names nobody is for all.
    pub fn is_directed_past(&self, reader: Guid) -> bool {
        let directions = self.parameters.iter();
        let mut directions = directions
            .filter(|parameter| parameter.id == pid::DIRECTED_WRITE)
            .peekable();
        directions.peek().is_some()
            && !directions.any(|parameter| {
                let value = parameter.value.rest();
                // A sequence of GUIDs; OpenDDS writes a bare one per parameter.
                let guids = value.get(value.len() % GUID_BYTES..).unwrap_or_default();
                let mut guids = guids.chunks_exact(GUID_BYTES);
                guids.any(|guid| guid == reader.to_bytes())
            })
    }

    /// The first parameter that must be understood and is not known to us; a
    /// reader drops such a change (§9.6.2.2.1).
    pub fn not_understood(&self) -> Option<u16> {
        self.parameters
            .iter()
            .map(|parameter| parameter.id)
            .find(|id| id & pid::FLAG_MUST_UNDERSTAND != 0)
    }
}

const GUID_BYTES: usize = 16;

/// The inline QoS we write with a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct InlineQosHead<'a> {
    /// What happened to the instance; `None` for plain data.
    pub status_info: Option<StatusInfo>,
    /// The instance.
    pub key_hash: Option<[u8; 16]>,
    /// The sample this one answers; written in both forms, since Fast DDS 2.6
    /// reads only its own and later ones only the standard one.
    pub related: Option<SampleIdentity>,
    /// Its coherent set and its place in its publisher.
    pub mark: Option<Mark>,
    /// The sample as it was first written.
    pub original: Option<SampleIdentity>,
    /// Which readers' filters were applied and what they said, as the value of
    /// PID_CONTENT_FILTER_INFO; empty if none.
    pub filter_info: &'a [u8],
}

impl InlineQosHead<'_> {
    /// Nothing to say.
    pub const NONE: Self = Self {
        status_info: None,
        key_hash: None,
        related: None,
        mark: None,
        original: None,
        filter_info: &[],
    };

    /// Whether nothing is to be written.
    pub fn is_empty(&self) -> bool {
        *self == Self::NONE
    }

    /// Size on the wire, bytes; zero when empty.
    pub fn size_bytes(&self) -> usize {
        if self.is_empty() {
            return 0;
        }
        let mut size = 4_usize;
        if self.status_info.is_some() {
            size.tally_by(4 + 4);
        }
        if self.key_hash.is_some() {
            size.tally_by(4 + 16);
        }
        if self.related.is_some() {
            size.tally_by(2 * (4 + 24));
        }
        size.tally_by(self.mark.as_ref().map_or(0, Mark::size_bytes));
        if self.original.is_some() {
            size.tally_by(4 + 24);
        }
        if !self.filter_info.is_empty() {
            size.tally_by(4);
            size.tally_by(self.filter_info.len().next_multiple_of(4));
        }
        size
    }

    /// Appends the list with its sentinel; nothing when empty.
    pub fn write(&self, out: &mut Vec<u8>) {
        if self.is_empty() {
            return;
        }
        if let Some(key_hash) = self.key_hash {
            write_parameter(out, pid::KEY_HASH, &key_hash);
        }
        if let Some(status) = self.status_info {
            write_parameter(out, pid::STATUS_INFO, &status.0.to_be_bytes());
        }
        if let Some(related) = self.related {
            for id in [
                pid::RELATED_SAMPLE_IDENTITY,
                pid::LEGACY_RELATED_SAMPLE_IDENTITY,
            ] {
                write_sample_identity(out, id, related.writer, related.sequence);
            }
        }
        if let Some(mark) = &self.mark {
            mark.write(out);
        }
        if let Some(original) = self.original {
            let id = pid::ORIGINAL_WRITER_INFO;
            write_sample_identity(out, id, original.writer, original.sequence);
        }
        if !self.filter_info.is_empty() {
            write_parameter(out, pid::CONTENT_FILTER_INFO, self.filter_info);
        }
        write_sentinel(out);
    }
}

fn write_sample_identity(out: &mut Vec<u8>, id: u16, writer: Guid, sequence: SequenceNumber) {
    let at = super::parameter::begin_parameter(out, id);
    out.extend_from_slice(&writer.to_bytes());
    write_sequence(out, sequence);
    super::parameter::end_parameter(out, at);
}
