//! Protected payloads, submessages and messages: the receiver opens them, and
//! rejects them after any single bit was changed.

use crate::support;

use pteros_security::crypto::{
    Frame, KeyMaterial, KeyMaterialError, OpenError, Opener, ProtectionLayer, ReceiverKey,
    SealError, Sealer, TransformKind, key_exchange_material,
};

const KINDS: [TransformKind; 4] = [
    TransformKind::Aes128Gmac,
    TransformKind::Aes128Gcm,
    TransformKind::Aes256Gmac,
    TransformKind::Aes256Gcm,
];
const LAYERS: [ProtectionLayer; 3] = [
    ProtectionLayer::Payload,
    ProtectionLayer::Submessage,
    ProtectionLayer::Message,
];

/// A DATA-like submessage with 12 bytes, little-endian.
const SUBMESSAGE: [u8; 16] = [0x15, 1, 12, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];

fn frame(layer: ProtectionLayer, bytes: &[u8]) -> Option<Frame<'_>> {
    match layer {
        ProtectionLayer::Payload => Frame::of_payload(bytes).ok(),
        ProtectionLayer::Submessage => Frame::of_submessage(bytes).ok().map(|(frame, _)| frame),
        ProtectionLayer::Message => Frame::of_message(bytes).ok(),
    }
}

fn open(opener: &mut Opener, layer: ProtectionLayer, bytes: &[u8]) -> Option<Vec<u8>> {
    let mut buffer = Vec::new();
    let opened = opener.open(&frame(layer, bytes)?, &mut buffer).ok()?;
    Some(opened.bytes().to_vec())
}

#[test]
fn everything_that_is_sealed_is_opened_and_no_bit_of_it_may_change() {
    for kind in KINDS {
        for layer in LAYERS {
            for with_origin in [false, true] {
                let with_origin = with_origin && layer != ProtectionLayer::Payload;
                let material = KeyMaterial::generate(kind, with_origin).unwrap();
                let mut sealer = Sealer::new(material.clone()).unwrap();
                let mut opener = Opener::new(material.clone(), with_origin);
                let receivers = with_origin.then(|| ReceiverKey::new(material.clone()));
                let mut sealed = Vec::new();
                sealer
                    .seal(layer, &SUBMESSAGE, &receivers, &mut sealed)
                    .unwrap();
                assert!(sealed.len() - 16 <= Sealer::overhead_bytes(layer, with_origin.into()));
                let opened = open(&mut opener, layer, &sealed);
                assert_eq!(
                    opened.as_deref(),
                    Some(&SUBMESSAGE[..]),
                    "{kind:?} {layer:?}"
                );
                let hidden = !sealed.windows(12).any(|part| part == &SUBMESSAGE[4..]);
                assert_eq!(hidden, kind.encrypts());
                for bit in 0..sealed.len() * 8 {
                    let mut bent = sealed.clone();
                    bent[bit / 8] ^= 1 << (bit % 8);
                    let opened = open(&mut opener, layer, &bent);
                    // Flags of the frame, lengths of padding and codes of
                    // others are not protected; the content is.
                    assert!(
                        opened.is_none() || opened.as_deref() == Some(&SUBMESSAGE[..]),
                        "{kind:?} {layer:?} bit {bit}"
                    );
                }
                for length in 0..sealed.len() {
                    let opened = open(&mut opener, layer, &sealed[..length]);
                    assert!(opened.is_none(), "{kind:?} {layer:?} {length}");
                }
            }
        }
    }
}

#[test]
fn each_receiver_can_authenticate_the_origin() {
    let ours = KeyMaterial::generate(TransformKind::Aes256Gcm, true).unwrap();
    let theirs = ReceiverKey::new(ours.for_another_receiver().unwrap());
    let our_own = ReceiverKey::new(ours.clone());
    let mut sealer = Sealer::new(ours.clone()).unwrap();
    let mut both = Vec::new();
    sealer
        .seal(
            ProtectionLayer::Submessage,
            &SUBMESSAGE,
            [&our_own, &theirs],
            &mut both,
        )
        .unwrap();
    for receiver in [&our_own, &theirs] {
        let mut opener = Opener::new(receiver.material().clone(), true);
        assert!(open(&mut opener, ProtectionLayer::Submessage, &both).is_some());
    }
    // A receiver that forges has the common key, but not the other's own.
    let mut forged = Vec::new();
    sealer
        .seal(
            ProtectionLayer::Submessage,
            &SUBMESSAGE,
            [&theirs],
            &mut forged,
        )
        .unwrap();
    let mut opener = Opener::new(ours, true);
    let mut buffer = Vec::new();
    let (frame, rest) = Frame::of_submessage(&forged).unwrap();
    assert_eq!(opener.open(&frame, &mut buffer), Err(OpenError::Origin));
    assert!(rest.is_empty());
}

#[test]
fn receiver_specific_macs_are_right_in_every_session() {
    let material = KeyMaterial::generate(TransformKind::Aes256Gcm, true).unwrap();
    let receiver = ReceiverKey::new(material.clone());
    let mut opener = Opener::new(material.clone(), true);
    // Sealers of one key, each in a session of its own, in turns.
    let sealer = |_| Sealer::new(material.clone()).unwrap();
    let mut sealers: Vec<_> = (0..3).map(sealer).collect();
    for round in 0..9 {
        let sealer = &mut sealers[[0, 0, 1, 2][round % 4]];
        let mut sealed = Vec::new();
        sealer
            .seal(
                ProtectionLayer::Message,
                &SUBMESSAGE,
                [&receiver],
                &mut sealed,
            )
            .unwrap();
        assert!(open(&mut opener, ProtectionLayer::Message, &sealed).is_some());
    }
}

#[test]
fn signed_data_is_rejected_where_encryption_is_required() {
    let material = KeyMaterial::generate(TransformKind::Aes256Gcm, false).unwrap();
    let mut bytes = material.to_bytes();
    bytes[3] = 3;
    let signing = KeyMaterial::from_bytes(&bytes).unwrap();
    let mut sealed = Vec::new();
    let mut sealer = Sealer::new(signing).unwrap();
    sealer
        .seal(ProtectionLayer::Payload, b"forged text.", [], &mut sealed)
        .unwrap();
    let mut opener = Opener::new(material, false);
    let frame = Frame::of_payload(&sealed).unwrap();
    assert_eq!(opener.open(&frame, &mut Vec::new()), Err(OpenError::Key));
}

#[test]
fn sessions_that_change_with_every_message_and_overtake_one_another_are_opened() {
    let material = KeyMaterial::generate(TransformKind::Aes128Gcm, false).unwrap();
    let mut sealed = Vec::new();
    for round in 0..40_u8 {
        let mut sealer = Sealer::new(material.clone()).unwrap();
        let mut one = Vec::new();
        sealer
            .seal(ProtectionLayer::Payload, &[round; 33], [], &mut one)
            .unwrap();
        sealed.push(one);
    }
    let mut opener = Opener::new(material, false);
    let mut next = support::numbers(3);
    for _ in 0..400 {
        let at = next() % sealed.len();
        let opened = open(&mut opener, ProtectionLayer::Payload, &sealed[at]);
        assert_eq!(opened, Some(vec![at as u8; 33]));
    }
}

#[test]
fn nothing_is_allocated_once_buffers_and_session_are_there() {
    // Buffers keep their place; the allocator itself is counted where nodes are.
    let material = KeyMaterial::generate(TransformKind::Aes256Gcm, false).unwrap();
    let mut sealer = Sealer::new(material.clone()).unwrap();
    let mut opener = Opener::new(material, false);
    let plain = vec![7; 60_000];
    let (mut sealed, mut buffer) = (Vec::with_capacity(61_000), Vec::with_capacity(60_000));
    let places = (sealed.as_ptr(), buffer.as_ptr());
    for _ in 0..100 {
        sealed.clear();
        sealer
            .seal(ProtectionLayer::Message, &plain, [], &mut sealed)
            .unwrap();
        let frame = Frame::of_message(&sealed).unwrap();
        let opened = opener.open(&frame, &mut buffer).unwrap();
        assert_eq!(opened.bytes(), plain);
    }
    assert_eq!(places, (sealed.as_ptr(), buffer.as_ptr()));
}

#[test]
fn data_too_long_for_a_submessage_is_an_error_and_leaves_the_buffer() {
    let material = KeyMaterial::generate(TransformKind::Aes256Gcm, true).unwrap();
    let mut sealer = Sealer::new(material.clone()).unwrap();
    let mut out = vec![1, 2, 3];
    let long = vec![0; 66_000];
    let refused = sealer.seal(ProtectionLayer::Submessage, &long, [], &mut out);
    assert!(matches!(refused, Err(SealError::TooLong(_))));
    let receiver = ReceiverKey::new(material);
    let many = std::iter::repeat_n(&receiver, 4000);
    let refused = sealer.seal(ProtectionLayer::Submessage, &SUBMESSAGE, many, &mut out);
    assert_eq!(refused, Err(SealError::TooManyReceivers(4000)));
    assert_eq!(out, [1, 2, 3]);
    assert!(
        sealer
            .seal(ProtectionLayer::Payload, &long, [], &mut out)
            .is_ok()
    );
}

#[test]
fn odd_lengths_are_padded_to_whole_words_within_submessages() {
    let material = KeyMaterial::generate(TransformKind::Aes256Gcm, false).unwrap();
    let mut sealer = Sealer::new(material.clone()).unwrap();
    let mut opener = Opener::new(material, false);
    for length in 0..70 {
        let plain = vec![9; length];
        let mut sealed = Vec::new();
        sealer
            .seal(ProtectionLayer::Submessage, &plain, [], &mut sealed)
            .unwrap();
        assert_eq!(sealed.len() % 4, 0);
        assert_eq!(
            open(&mut opener, ProtectionLayer::Submessage, &sealed),
            Some(plain)
        );
    }
}

#[test]
fn key_material_is_written_and_read_back_and_bad_tokens_are_refused() {
    for kind in KINDS {
        for for_receiver in [false, true] {
            let material = KeyMaterial::generate(kind, for_receiver).unwrap();
            let bytes = material.to_bytes();
            assert_eq!(KeyMaterial::from_bytes(&bytes), Ok(material.clone()));
            for length in 0..bytes.len() {
                assert!(KeyMaterial::from_bytes(&bytes[..length]).is_err());
            }
            let longer = [&bytes[..], &[0]].concat();
            assert_eq!(
                KeyMaterial::from_bytes(&longer),
                Err(KeyMaterialError::Length)
            );
            assert!(!format!("{material:?}").contains("salt"));
        }
    }
    let mut zero = KeyMaterial::generate(TransformKind::Aes128Gcm, false)
        .unwrap()
        .to_bytes();
    zero[8..24].fill(0);
    assert_eq!(KeyMaterial::from_bytes(&zero), Err(KeyMaterialError::Key));
    zero[3] = 5;
    assert_eq!(KeyMaterial::from_bytes(&zero), Err(KeyMaterialError::Kind));
}

#[test]
fn both_sides_of_a_handshake_derive_the_same_key_exchange_material() {
    let (one, two) = ([1; 32], [2; 32]);
    let ours = key_exchange_material(b"secret", &one, &two);
    assert_eq!(ours, key_exchange_material(b"secret", &one, &two));
    assert_ne!(ours, key_exchange_material(b"secret", &two, &one));
    assert_ne!(ours, key_exchange_material(b"Secret", &one, &two));
    let mut sealed = Vec::new();
    Sealer::new(ours.clone())
        .unwrap()
        .seal(ProtectionLayer::Submessage, &SUBMESSAGE, [], &mut sealed)
        .unwrap();
    let mut opener = Opener::new(ours, false);
    assert!(open(&mut opener, ProtectionLayer::Submessage, &sealed).is_some());
}

#[test]
fn random_bytes_are_never_opened_and_never_panic() {
    let material = KeyMaterial::generate(TransformKind::Aes256Gmac, true).unwrap();
    let mut opener = Opener::new(material.clone(), true);
    let mut sealer = Sealer::new(material.clone()).unwrap();
    let receiver = ReceiverKey::new(material);
    let mut next = support::numbers(11);
    for round in 0..20_000 {
        let mut bytes: Vec<u8> = (0..next() % 150).map(|_| next() as u8).collect();
        if round % 2 == 0 {
            // Something that begins well.
            bytes.clear();
            sealer
                .seal(
                    ProtectionLayer::Message,
                    &SUBMESSAGE,
                    [&receiver],
                    &mut bytes,
                )
                .unwrap();
            for _ in 0..1 + next() % 3 {
                let at = next() % bytes.len();
                bytes[at] = next() as u8;
            }
            bytes.truncate(next() % (bytes.len() + 1));
        }
        for layer in LAYERS {
            let opened = open(&mut opener, layer, &bytes);
            assert!(opened.is_none_or(|opened| opened == SUBMESSAGE));
        }
    }
}

/// Made by hand with Python's hmac and AES-GCM: an oracle that shares no code.
#[test]
fn vectors_of_another_implementation_are_opened() {
    let token_256 = "0000000400000020000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\
        deadbeef00000020202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f\
        0000000000000000";
    let payload = "00000004deadbeef0102030408090a0b0c0d0e0f0000001078041bcceb09a21be97f3a483fffcc4f\
        87edd708f46dd15c8a8b8cefb3fe537d00000000";
    let token_128 = "0000000100000010000102030405060708090a0b0c0d0e0fdeadbeef000000101011121314151617\
        18191a1b1c1d1e1f0000000700000010404142434445464748494a4b4c4d4e4f";
    let submessage = "3101140000000001deadbeef0102030408090a0b0c0d0e0f15010c000102030405060708090a0b0c\
        320128007ffdf17dfbd9cce839d61fa2a38bfea20000000100000007bc4e9850f54ab19f5e66621b\
        13ad047d";
    let message = "3301140000000001deadbeef0102030408090a0b0c0d0e0f15010c000102030405060708090a0b0c\
        340128007ffdf17dfbd9cce839d61fa2a38bfea20000000100000007bc4e9850f54ab19f5e66621b\
        13ad047d";
    for (token, sealed, layer) in [
        (token_256, payload, ProtectionLayer::Payload),
        (token_128, submessage, ProtectionLayer::Submessage),
        (token_128, message, ProtectionLayer::Message),
    ] {
        let material = KeyMaterial::from_bytes(&bytes(token)).unwrap();
        assert_eq!(material.to_bytes(), bytes(token));
        let mut opener = Opener::new(material, layer != ProtectionLayer::Payload);
        let opened = open(&mut opener, layer, &bytes(sealed));
        assert_eq!(opened.as_deref(), Some(&SUBMESSAGE[..]), "{layer:?}");
    }
    let exchange = "0000000400000020c7272c77a139ea0e5c77a6ed8c24e2fcc01cdc3fdbd434f3ebb42292b92dffd8\
        0000000000000020198991387711afa6019dddc8a0dac0f533530b9eabd53cd25eb14c3e28ae8180\
        0000000000000000";
    let derived = key_exchange_material(b"secret", &[1; 32], &[2; 32]);
    assert_eq!(derived.to_bytes(), bytes(exchange));
}

fn bytes(hexadecimal: &str) -> Vec<u8> {
    let digits: Vec<u8> = hexadecimal.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(pair).collect()
}
