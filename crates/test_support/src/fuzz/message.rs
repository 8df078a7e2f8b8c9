//! Any datagram through the message receiver: parsed submessages obey their rules.

use pteros_rtps::id::{Guid, GuidPrefix};
use pteros_rtps::receiver::MessageReader;
use pteros_rtps::wire::Submessage;

pub fn message(data: &[u8]) {
    let Ok(mut reader) = MessageReader::new(data, GuidPrefix::UNKNOWN) else {
        return;
    };
    let mut count = 0;
    for (_, submessage) in reader.by_ref() {
        count += 1;
        look_at(&submessage);
    }
    assert!(count <= data.len() / 4, "more submessages than headers fit");
}

fn look_at(submessage: &Submessage<'_>) {
    match submessage {
        Submessage::Data(data) => {
            assert!(data.sequence.0 > 0);
            let _ = (data.change_kind(), data.inline_qos.key_hash());
            let _ = data.inline_qos.related_sample_identity();
            let _ = data.inline_qos.unknown_must_understand();
            let _ = data.inline_qos.is_directed_to_others(Guid::UNKNOWN);
        }
        Submessage::DataFrag(fragment) => {
            let end = fragment.offset_bytes() + fragment.payload.len();
            assert!(end <= fragment.sample_size as usize);
            assert!(fragment.fragments_total() >= fragment.first_fragment.0);
        }
        Submessage::AckNack(acknack) => {
            assert!(acknack.state.iter().count() <= 256);
            assert!(acknack.state.iter().all(|n| n >= acknack.state.base()));
        }
        Submessage::Gap(gap) => assert!(gap.start.0 > 0 && gap.list.base().0 > 0),
        Submessage::NackFrag(nack) => assert!(nack.state.iter().all(|n| n.0 > 0)),
        Submessage::Heartbeat(heartbeat) => assert!(heartbeat.last >= heartbeat.first.previous()),
        Submessage::InfoReply(reply) => {
            let _ = (reply.unicast.iter().count(), reply.multicast.iter().count());
        }
        _ => {}
    }
}
