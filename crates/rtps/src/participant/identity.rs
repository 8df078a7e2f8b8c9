//! Identity of a remote participant, as it announces it (DDS Security 1.1 §8.8.1).

use bytes::Bytes;

use crate::discovery::data::ParticipantData;
use crate::discovery::spdp;

/// Whether it announces an identity.
pub(super) fn has_identity(data: &ParticipantData) -> bool {
    let has_endpoint = data.builtin_endpoints & spdp::STATELESS_WRITER != 0;
    // Some set the bits without a token, so both are required.
    has_endpoint && has_identity_token(data)
}

/// Whether it announces the token of an identity, with or without endpoints to prove it.
pub(super) fn has_identity_token(data: &ParticipantData) -> bool {
    let is_token = |(id, _): &(u16, Bytes)| *id == crate::wire::pid::IDENTITY_TOKEN;
    data.security_tokens.iter().any(is_token)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::GuidPrefix;
    use crate::wire::pid;

    #[test]
    fn an_identity_is_announced_by_its_token_and_its_endpoint_together() {
        let mut data = ParticipantData::new(GuidPrefix([1; 12]));
        data.builtin_endpoints |= spdp::STATELESS_WRITER;
        assert!(!has_identity(&data));
        let token = |id| (id, Bytes::from_static(&[0; 8]));
        data.security_tokens = alloc::vec![token(pid::PERMISSIONS_TOKEN)];
        assert!(!has_identity(&data));
        data.security_tokens.push(token(pid::IDENTITY_TOKEN));
        assert!(has_identity(&data));
        data.builtin_endpoints &= !spdp::STATELESS_WRITER;
        assert!(!has_identity(&data));
    }
}
