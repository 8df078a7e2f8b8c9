//! Payloads of the built-in topics: parsed data survives a round trip, and its
//! memory is not much larger than its wire form.

use pteros_rtps::discovery::data::{EndpointData, ParticipantData, ParticipantMessageData};

pub fn participant_data(data: &[u8]) {
    let _ = ParticipantData::parse_key(data);
    if let Ok(read) = ParticipantData::parse(data) {
        // Bytes are compared: a token of odd length comes back padded.
        let again = ParticipantData::parse(&read.encode()).expect("our own writing");
        assert_eq!(again.encode(), read.encode());
    }
}

pub fn endpoint_data(data: &[u8]) {
    if let Ok(read) = EndpointData::parse(data) {
        let again = EndpointData::parse(&read.encode()).expect("our own writing");
        assert_eq!(again.encode(), read.encode());
    }
}

pub fn liveliness_data(data: &[u8]) {
    if let Ok(read) = ParticipantMessageData::parse(data) {
        let _ = (read.liveliness_kind(), read.key_hash());
        assert_eq!(
            ParticipantMessageData::parse(&read.encode()).as_ref(),
            Ok(&read)
        );
    }
}
