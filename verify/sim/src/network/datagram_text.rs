//! Text form of RTPS datagrams for traces: submessages with their numbers.

use std::fmt::Write;

use pteros_rtps::id::GuidPrefix;
use pteros_rtps::receiver::MessageReader;
use pteros_rtps::wire::Submessage;

/// One line of text about a datagram.
pub fn datagram_summary(bytes: &[u8]) -> String {
    let Ok(message) = MessageReader::new(bytes, destination(bytes)) else {
        return format!("{} bytes, not RTPS", bytes.len());
    };
    let prefix = message.header().prefix;
    let mut text = format!("{prefix:?}");
    for (_, submessage) in message {
        let _ = match submessage {
            Submessage::Data(d) => write!(
                text,
                " DATA({:?} {} {}B)",
                d.writer,
                d.sequence.0,
                d.payload.len()
            ),
            Submessage::DataFrag(d) => write!(
                text,
                " FRAG({:?} {} {}+{})",
                d.writer, d.sequence.0, d.first_fragment.0, d.fragment_count
            ),
            Submessage::Heartbeat(h) => write!(
                text,
                " HB({:?}>{:?} {}..{} #{}{}{})",
                h.writer,
                h.reader,
                h.first.0,
                h.last.0,
                h.count,
                if h.is_final { " final" } else { "" },
                if h.liveliness { " alive" } else { "" }
            ),
            Submessage::Gap(g) => write!(
                text,
                " GAP({:?}>{:?} {}..{} +{})",
                g.writer,
                g.reader,
                g.start.0,
                g.list.base().0,
                g.list.iter().count()
            ),
            Submessage::AckNack(a) => {
                let missing: Vec<i64> = a.state.iter().map(|n| n.0).collect();
                write!(
                    text,
                    " ACK({:?}>{:?} base {} missing {missing:?} #{})",
                    a.reader,
                    a.writer,
                    a.state.base().0,
                    a.count
                )
            }
            Submessage::NackFrag(n) => {
                write!(text, " NACKFRAG({:?} {})", n.writer, n.sequence.0)
            }
            Submessage::HeartbeatFrag(h) => {
                write!(text, " HBFRAG({:?} {})", h.writer, h.sequence.0)
            }
            _ => Ok(()),
        };
    }
    text
}

/// Whether a datagram holds user traffic besides discovery and liveliness.
pub fn has_user_traffic(bytes: &[u8]) -> bool {
    let Ok(message) = MessageReader::new(bytes, destination(bytes)) else {
        return false;
    };
    let mut any = false;
    for (_, submessage) in message {
        any |= submessage
            .writer()
            .is_some_and(|writer| !writer.is_builtin());
    }
    any
}

/// The destination prefix, so that the reader skips no submessage: the first
/// INFO_DST, which Pteros always sends first.
fn destination(bytes: &[u8]) -> GuidPrefix {
    let prefix = bytes.get(24..36).filter(|_| bytes.get(20) == Some(&0x0e));
    let prefix = prefix.and_then(|p| p.try_into().ok());
    prefix.map_or(GuidPrefix::UNKNOWN, GuidPrefix)
}
