//! Inline QoS: parameters sent with one change (RTPS 2.5 §8.7, §9.6.4).

use crate::stats::Tally;
use alloc::vec::Vec;

use super::number_set::write_sequence;
use super::parameter::{write_number, write_parameter, write_sentinel};
use super::{Cursor, Parameters, WireError, pid};
use crate::change::ChangeKind;
use crate::coherent_mark::{CoherentMark, CoherentMarkKind};
use crate::content_filter::{self, FilterSignature};
use crate::id::Guid;
use crate::seq::{SampleIdentity, SequenceNumber};

/// The effect of a change on its instance (§9.6.4.9). Always big endian.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct StatusInfo(pub u32);

impl StatusInfo {
    /// The instance is disposed.
    pub const DISPOSED: Self = Self(1);
    /// The writer unregisters the instance.
    pub const UNREGISTERED: Self = Self(2);
    /// Both.
    pub const DISPOSED_UNREGISTERED: Self = Self(3);
    /// A content filter on the writer side rejected the sample.
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

/// A view of the inline QoS of one change; empty when it has none. Each accessor
/// searches the list.
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
    /// Checks the list and moves the cursor past it.
    pub fn parse(at: &mut Cursor<'a>) -> Result<Self, WireError> {
        Ok(Self {
            parameters: Parameters::parse(at)?,
        })
    }

    /// The checked list, in the order on the wire.
    pub fn parameters(&self) -> Parameters<'a> {
        self.parameters
    }

    /// The status info, if the change disposes or unregisters its instance.
    pub fn status_info(&self) -> Option<StatusInfo> {
        let mut value = self.parameters.find(pid::STATUS_INFO)?;
        Some(StatusInfo(u32::from_be_bytes(value.array().ok()?)))
    }

    /// The effect of the change on its instance.
    pub fn change_kind(&self) -> ChangeKind {
        let status = self.status_info().unwrap_or_default();
        match (status.is_disposed(), status.is_unregistered()) {
            (false, false) => ChangeKind::Alive,
            (true, false) => ChangeKind::Disposed,
            (false, true) => ChangeKind::Unregistered,
            (true, true) => ChangeKind::DisposedUnregistered,
        }
    }

    /// The key hash of the instance (PID_KEY_HASH), or the short key itself.
    pub fn key_hash(&self) -> Option<[u8; 16]> {
        self.parameters.find(pid::KEY_HASH)?.array().ok()
    }

    /// The related sample identity (service correlation): the request that this
    /// sample answers. Read from the standard parameter or from the older one of
    /// Fast DDS.
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

    /// ORIGINAL_WRITER_INFO: the identity of the sample when it was first written
    /// (§8.7.9). Set if the present writer forwards it, or wrote it before a
    /// restart.
    pub fn original_writer_info(&self) -> Option<SampleIdentity> {
        let mut value = self.parameters.find(pid::ORIGINAL_WRITER_INFO)?;
        Some(SampleIdentity {
            writer: value.guid().ok()?,
            sequence: value.sequence().ok()?,
        })
    }

    /// The coherent set mark of the change. A number that is not positive, or has
    /// another length, counts as absent.
    pub fn coherent_mark(&self, is_nothing: bool) -> Option<CoherentMark> {
        let mut mark = CoherentMark::default();
        let mut unknown_set = false;
        for parameter in self.parameters.iter() {
            let mut value = parameter.value;
            match parameter.id {
                pid::COHERENT_SET => {
                    let number = value.sequence().ok();
                    unknown_set = number == Some(SequenceNumber::UNKNOWN);
                    mark.coherent_set = number.filter(|number| number.is_valid());
                }
                pid::GROUP_SEQ_NUM => mark.group_sequence = value.positive_sequence().ok(),
                pid::GROUP_COHERENT_SET => mark.group_coherent_set = value.positive_sequence().ok(),
                pid::WRITER_GROUP_INFO => mark.writer_group_digest = value.array().ok(),
                _ => {}
            }
        }
        if is_nothing {
            mark.kind = if unknown_set || mark.group_coherent_set.is_some() {
                CoherentMarkKind::SetEnd
            } else {
                CoherentMarkKind::Filtered
            };
        }
        (mark != CoherentMark::default()).then_some(mark)
    }

    /// The writer's result of the content filter with this signature; `None` if the
    /// writer did not apply it.
    pub fn filter_result(&self, signature: &FilterSignature) -> Option<bool> {
        let value = self.parameters.find(pid::CONTENT_FILTER_INFO)?;
        content_filter::filter_result_of(value, signature)
    }

    /// Whether this directed write names readers, and `reader` is not one of them.
    /// It then counts as filtered (§8.7.7). A change without the parameter is for
    /// all readers.
    pub fn is_directed_to_others(&self, reader: Guid) -> bool {
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

    /// The first must-understand parameter that this stack does not know. A reader
    /// drops such a change (§9.6.2.2.1).
    pub fn unknown_must_understand(&self) -> Option<u16> {
        self.parameters
            .iter()
            .map(|parameter| parameter.id)
            .find(|id| id & pid::FLAG_MUST_UNDERSTAND != 0)
    }
}

const GUID_BYTES: usize = 16;

/// The inline QoS written with a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct InlineQosHead<'a> {
    /// Dispose or unregister; `None` for plain data.
    pub status_info: Option<StatusInfo>,
    /// The key hash of the instance.
    pub key_hash: Option<[u8; 16]>,
    /// The request that this sample answers. Written in both forms: Fast DDS 2.6
    /// reads only its own, later versions only the standard one.
    pub related_sample_identity: Option<SampleIdentity>,
    /// Its coherent set and its group sequence number.
    pub coherent_mark: Option<CoherentMark>,
    /// The identity of the sample when it was first written.
    pub original_writer_info: Option<SampleIdentity>,
    /// The applied content filters and their results: the value of
    /// PID_CONTENT_FILTER_INFO. Empty if there are none.
    pub filter_info: &'a [u8],
}

impl InlineQosHead<'_> {
    /// No parameters.
    pub const NONE: Self = Self {
        status_info: None,
        key_hash: None,
        related_sample_identity: None,
        coherent_mark: None,
        original_writer_info: None,
        filter_info: &[],
    };

    /// Whether there is nothing to write.
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
        if self.related_sample_identity.is_some() {
            size.tally_by(2 * (4 + 24));
        }
        size.tally_by(
            self.coherent_mark
                .as_ref()
                .map_or(0, CoherentMark::size_bytes),
        );
        if self.original_writer_info.is_some() {
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
        if let Some(related) = self.related_sample_identity {
            for id in [
                pid::RELATED_SAMPLE_IDENTITY,
                pid::LEGACY_RELATED_SAMPLE_IDENTITY,
            ] {
                write_sample_identity(out, id, related.writer, related.sequence);
            }
        }
        if let Some(mark) = &self.coherent_mark {
            write_coherent_mark(out, mark);
        }
        if let Some(original) = self.original_writer_info {
            let id = pid::ORIGINAL_WRITER_INFO;
            write_sample_identity(out, id, original.writer, original.sequence);
        }
        if !self.filter_info.is_empty() {
            write_parameter(out, pid::CONTENT_FILTER_INFO, self.filter_info);
        }
        write_sentinel(out);
    }
}

fn write_coherent_mark(out: &mut Vec<u8>, mark: &CoherentMark) {
    for (id, number) in [
        (pid::COHERENT_SET, mark.written_set()),
        (pid::GROUP_SEQ_NUM, mark.group_sequence),
        (pid::GROUP_COHERENT_SET, mark.group_coherent_set),
    ] {
        if let Some(number) = number {
            write_number(out, id, number);
        }
    }
    if let Some(writers) = mark.writer_group_digest {
        write_parameter(out, pid::WRITER_GROUP_INFO, &writers);
    }
}

fn write_sample_identity(out: &mut Vec<u8>, id: u16, writer: Guid, sequence: SequenceNumber) {
    let at = super::parameter::begin_parameter(out, id);
    out.extend_from_slice(&writer.to_bytes());
    write_sequence(out, sequence);
    super::parameter::end_parameter(out, at);
}
