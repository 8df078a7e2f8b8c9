//! Tests of programs of hand-made C types: introspection and CDR.

use std::ffi::{CStr, c_void};
use std::ptr::null;
use std::sync::Arc;

use super::*;
use crate::introspection::{MessageMember, MessageMembers};

pteros_test_support::message_members!();

/// Numbers of several widths, a boolean and a string.
#[repr(C)]
struct Mixed {
    small: u8,
    x: f64,
    y: f64,
    flag: u8,
    text: [usize; 3],
}

fn mixed_members() -> Vec<MessageMember> {
    use std::mem::offset_of;
    vec![
        member(c"small", 8, offset_of!(Mixed, small)),
        member(c"x", 2, offset_of!(Mixed, x)),
        member(c"y", 2, offset_of!(Mixed, y)),
        member(c"flag", 6, offset_of!(Mixed, flag)),
        member(c"text", 16, offset_of!(Mixed, text)),
    ]
}

#[test]
fn a_struct_survives_cdr_and_adjacent_numbers_are_one_copy() {
    let list = mixed_members();
    let members = members(c"Mixed", size_of::<Mixed>(), &list);
    // SAFETY: the members are those of `Mixed`.
    let (name, program) = unsafe {
        (
            members::dds_name(&members),
            Program::compile(&members, Language::C).unwrap(),
        )
    };
    assert_eq!(name, "test::msg::dds_::Mixed_");
    assert_eq!(program.ops.len(), 4, "x and y are one step");
    let mut text = *b"hi\0";
    let mut sent = Mixed {
        small: 7,
        x: 1.5,
        y: -2.0,
        flag: 1,
        text: [text.as_mut_ptr().expose_provenance(), 2, 3],
    };
    // SAFETY: an initialized struct of the type.
    let payload = unsafe {
        let len = program.serialized_len(pointer(&mut sent)).unwrap();
        let (payload, encoded) = program.encode_to_vec(pointer(&mut sent), len);
        encoded.unwrap();
        payload
    };
    let expected = [
        &[0, 1, 0, 0][..],
        &[7, 0, 0, 0, 0, 0, 0, 0],
        &1.5_f64.to_le_bytes(),
        &(-2.0_f64).to_le_bytes(),
        &[1, 0, 0, 0],
        &[3, 0, 0, 0],
        b"hi\0",
    ];
    assert_eq!(payload, expected.concat());
    let mut received = Mixed {
        small: 0,
        x: 0.0,
        y: 0.0,
        flag: 0,
        text: [0; 3],
    };
    // SAFETY: as above; a zeroed C string is empty.
    unsafe { program.decode(&payload, pointer(&mut received)) }.unwrap();
    assert_eq!(
        (received.small, received.x, received.y, received.flag),
        (7, 1.5, -2.0, 1)
    );
    // SAFETY: a string of two bytes that `decode` has allocated.
    let text: &[u8] =
        unsafe { strings::read(Language::C, std::ptr::from_ref(&received.text).cast()) }.unwrap();
    assert_eq!(text, b"hi");
}

#[test]
fn a_message_that_ends_early_or_lies_about_a_length_is_refused() {
    let list = mixed_members();
    let members = members(c"Mixed", size_of::<Mixed>(), &list);
    // SAFETY: the members are those of `Mixed`.
    let program = unsafe { Program::compile(&members, Language::C) }.unwrap();
    let good = [
        &[0, 1, 0, 0][..],
        &[0; 24],
        &[1, 0, 0, 0],
        &[3, 0, 0, 0],
        b"hi\0",
    ]
    .concat();
    let decode = |payload: &[u8]| {
        let mut received = Mixed {
            small: 0,
            x: 0.0,
            y: 0.0,
            flag: 0,
            text: [0; 3],
        };
        // SAFETY: an initialized struct of the type.
        unsafe { program.decode(payload, pointer(&mut received)) }
    };
    assert!(decode(&good).is_ok());
    for end in 0..good.len() {
        assert!(decode(&good[..end]).is_err(), "{end}");
    }
    let mut lie = good;
    lie[32..36].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(decode(&lie).unwrap_err().text.contains("bytes are left"));
}

fn array(name: &'static CStr, type_id: u8, offset: usize, count: usize) -> MessageMember {
    MessageMember {
        is_array: true,
        array_size: count,
        ..member(name, type_id, offset)
    }
}

/// A plain struct with a gap inside and one at its end.
#[repr(C)]
struct Plain {
    flags: [u8; 3],
    x: f64,
    last: u16,
}

fn plain_program() -> Program {
    use std::mem::offset_of;
    let list = vec![
        array(c"flags", 6, offset_of!(Plain, flags), 3),
        member(c"x", 2, offset_of!(Plain, x)),
        member(c"last", 10, offset_of!(Plain, last)),
    ];
    let members = members(c"Plain", size_of::<Plain>(), &list);
    // SAFETY: the members are those of `Plain`.
    unsafe { Program::compile(&members, Language::C) }.unwrap()
}

#[test]
fn a_plain_struct_is_viewed_in_place_unless_its_bytes_forbid_it() {
    let program = plain_program();
    let layout = PlainLayout::of(&program).expect("plain");
    let mut sent = Plain {
        flags: [1, 0, 1],
        x: 2.5,
        last: 9,
    };
    // Aligned as memory of loans: the body begins at a multiple of 8.
    let mut words = vec![0_u64; 5];
    // SAFETY: 40 bytes.
    let bytes = unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast::<u8>(), 40) };
    // SAFETY: an initialized struct of the type.
    let len = unsafe { program.serialized_len(pointer(&mut sent)) }.unwrap();
    assert_eq!(len, 4 + 18, "without the gap at the end");
    // SAFETY: as above.
    let (encoded, outcome) = unsafe { program.encode_to_vec(pointer(&mut sent), len) };
    outcome.unwrap();
    bytes[4..4 + len].copy_from_slice(&encoded);
    let payload = &mut bytes[4..4 + 4 + 24];
    let body = layout.view(payload).expect("viewed in place");
    assert_eq!(body.as_ptr().addr() % 8, 0);
    assert_eq!(body[..3], [1, 0, 1]);
    assert_eq!(body[8..16], 2.5_f64.to_le_bytes());
    assert!(layout.view(&payload[..len]).is_none(), "the end is missing");
    payload[4] = 2;
    assert!(layout.view(payload).is_none(), "2 is no boolean");
    payload[4] = 1;
    payload[1] = 0;
    assert!(layout.view(payload).is_none(), "big endian");
    assert!(layout.view(&[0, 1]).is_none(), "no header");
    let mut used = [0xee; 24];
    layout.clear_gaps(&mut used);
    let gaps: Vec<_> = (0..24).filter(|at| used[*at] == 0).collect();
    assert_eq!(gaps, [3, 4, 5, 6, 7, 18, 19, 20, 21, 22, 23]);
}

#[test]
fn types_with_strings_and_structs_unlike_cdr_are_not_plain() {
    let list = mixed_members();
    let mixed = members(c"Mixed", size_of::<Mixed>(), &list);
    let list = [member(c"a", 8, 0), member(c"b", 8, 8), member(c"c", 2, 16)];
    let unlike = members(c"Unlike", 24, &list);
    for members in [mixed, unlike] {
        // SAFETY: the members are those of a struct.
        let program = unsafe { Program::compile(&members, Language::C) }.unwrap();
        assert!(PlainLayout::of(&program).is_none());
    }
}

#[test]
fn xcdr2_aligns_at_four_and_sizes_collections_of_strings() {
    use std::mem::offset_of;
    #[repr(C)]
    struct Named {
        small: u8,
        x: f64,
        texts: [[usize; 3]; 2],
    }
    let list = [
        member(c"small", 8, offset_of!(Named, small)),
        member(c"x", 2, offset_of!(Named, x)),
        array(c"texts", 16, offset_of!(Named, texts), 2),
    ];
    let members = members(c"Named", size_of::<Named>(), &list);
    // SAFETY: the members are those of `Named`.
    let program = unsafe { Program::compile(&members, Language::C) }.unwrap();
    let payload = [
        &[0, 7, 0, 0][..],
        &[3, 0, 0, 0],
        &1.5_f64.to_le_bytes(),
        &[14, 0, 0, 0],
        &[3, 0, 0, 0],
        b"ab\0\0",
        &[2, 0, 0, 0],
        b"c\0",
    ]
    .concat();
    let mut received = Named {
        small: 0,
        x: 0.0,
        texts: [[0; 3]; 2],
    };
    // SAFETY: an initialized struct of the type; a zeroed C string is empty.
    unsafe { program.decode(&payload, pointer(&mut received)) }.unwrap();
    assert_eq!((received.small, received.x), (3, 1.5));
    for (at, expected) in [b"ab".as_slice(), b"c"].into_iter().enumerate() {
        // SAFETY: a string that `decode` has allocated.
        let text: &[u8] =
            unsafe { strings::read(Language::C, std::ptr::from_ref(&received.texts[at]).cast()) }
                .unwrap();
        assert_eq!(text, expected);
    }
    let delimited = [&[0, 9, 0, 0][..], &payload[4..]].concat();
    // SAFETY: as above.
    assert!(unsafe { program.decode(&delimited, pointer(&mut received)) }.is_err());
}

#[test]
fn a_description_from_introspection_names_nested_types_and_bounds() {
    let inner_list = [member(c"value", 2, 0)];
    let inner = members(c"Inner", 8, &inner_list);
    let handle = crate::introspection::MessageTypeSupport {
        typesupport_identifier: null(),
        data: std::ptr::from_ref(&inner).cast(),
        func: None,
        get_type_hash_func: None,
        get_type_description_func: null(),
        get_type_description_sources_func: null(),
    };
    let bounded = MessageMember {
        string_upper_bound: 5,
        ..member(c"name", 16, 8)
    };
    let few = MessageMember {
        is_upper_bound: true,
        ..array(c"few", 12, 40, 7)
    };
    let one = MessageMember {
        members: &raw const handle,
        ..member(c"inner", 18, 0)
    };
    let list = [one, bounded, few];
    let outer = members(c"Outer", 64, &list);
    // SAFETY: the members outlive the use.
    let described = unsafe { IntrospectedType::new(&outer) }.describe().unwrap();
    assert_eq!(described.type_description.type_name, "test/msg/Outer");
    assert_eq!(described.referenced[0].type_name, "test/msg/Inner");
    let text = pteros_msg::dynamic::DynamicType::new(&described).unwrap();
    let texts: Vec<_> = text
        .fields()
        .iter()
        .map(|field| field.type_text())
        .collect();
    assert_eq!(texts, ["test/msg/Inner", "string<=5", "uint32[<=7]"]);
}

/// A C string in its own memory, as a struct has it.
fn owned_string(text: &str) -> [usize; 3] {
    let mut string = [0_usize; 3];
    // SAFETY: a zeroed C string is empty.
    unsafe { strings::write(Language::C, pointer(&mut string), text.as_bytes()) }.unwrap();
    string
}

fn text_of(string: &[usize; 3]) -> String {
    // SAFETY: a C string.
    let text: &[u8] =
        unsafe { strings::read(Language::C, std::ptr::from_ref(string).cast()) }.unwrap();
    String::from_utf8(text.to_vec()).unwrap()
}

fn free_string(string: [usize; 3]) {
    // SAFETY: memory of malloc, or null.
    unsafe { strings::free(std::ptr::with_exposed_provenance_mut(string[0])) };
}

#[test]
fn a_copy_has_memory_of_its_own_and_a_move_passes_it_on() {
    let list = mixed_members();
    let members = members(c"Mixed", size_of::<Mixed>(), &list);
    // SAFETY: the members are those of `Mixed`.
    let program = unsafe { Program::compile(&members, Language::C) }.unwrap();
    let mixed = |x, text| Mixed {
        small: 7,
        x,
        y: -2.0,
        flag: 1,
        text: owned_string(text),
    };
    let (mut sent, mut copied) = (mixed(1.5, "a longer text"), mixed(0.0, "old"));
    let mut moved = mixed(0.0, "older");
    // SAFETY: initialized structs of the type.
    unsafe {
        program
            .copy(pointer(&mut sent), pointer(&mut copied))
            .unwrap();
        assert_ne!(copied.text[0], sent.text[0]);
        assert_eq!(text_of(&sent.text), "a longer text");
        let memory = copied.text[0];
        program
            .move_into(pointer(&mut copied), pointer(&mut moved))
            .unwrap();
        assert_eq!(moved.text[0], memory);
    }
    assert_eq!(
        (moved.small, moved.x, moved.y, moved.flag),
        (7, 1.5, -2.0, 1)
    );
    assert_eq!(text_of(&moved.text), "a longer text");
    assert_eq!(text_of(&copied.text), "older");
    for string in [sent.text, copied.text, moved.text] {
        free_string(string);
    }
}

#[test]
fn short_and_long_strings_of_cpp_change_places() {
    /// `std::string` of libstdc++.
    #[repr(C)]
    struct Text {
        data: usize,
        size: usize,
        local: [u8; 16],
    }
    let long = *b"characters of a string that is long\0";
    let of_long = |text: &mut Text| {
        text.data = long.as_ptr().expose_provenance();
        text.size = long.len() - 1;
        text.local = [0; 16];
        text.local[0] = 40;
    };
    let of_short = |text: &mut Text, letter: u8| {
        text.data = text.local.as_ptr().expose_provenance();
        text.size = 1;
        text.local = [0; 16];
        text.local[0] = letter;
    };
    let read = |text: &mut Text| {
        // SAFETY: a string.
        let units: &[u8] = unsafe { strings::read(Language::Cpp, pointer(text)) }.unwrap();
        String::from_utf8(units.to_vec()).unwrap()
    };
    let blank = || Text {
        data: 0,
        size: 0,
        local: [0; 16],
    };
    for (first_is_long, second_is_long) in
        [(false, false), (false, true), (true, false), (true, true)]
    {
        let (mut one, mut other) = (blank(), blank());
        for (text, is_long, letter) in [
            (&mut one, first_is_long, b'a'),
            (&mut other, second_is_long, b'b'),
        ] {
            if is_long {
                of_long(text);
            } else {
                of_short(text, letter);
            }
        }
        let before = [read(&mut one), read(&mut other)];
        // SAFETY: two strings.
        unsafe { strings::swap(Language::Cpp, pointer(&mut one), pointer(&mut other)) };
        let after = [read(&mut other), read(&mut one)];
        assert_eq!(before, after);
        for (text, is_long) in [(&mut one, second_is_long), (&mut other, first_is_long)] {
            let local = text.local.as_ptr().addr();
            assert_eq!(
                text.data != local,
                is_long,
                "a short string lies in its object"
            );
        }
    }
}

/// Cyclone DDS and Fast DDS send and take such strings.
#[test]
fn a_string_beyond_its_bound_is_sent_and_taken() {
    let bounded = MessageMember {
        string_upper_bound: 3,
        ..member(c"bounded", 16, 0)
    };
    let list = [bounded];
    let described = members(c"Text", 24, &list);
    // SAFETY: the members are those of one string.
    let program = unsafe { Program::compile(&described, Language::C) }.unwrap();
    let mut sent = owned_string("longer than three");
    let mut received = owned_string("before");
    // SAFETY: initialized structs of the type.
    unsafe {
        let len = program.serialized_len(pointer(&mut sent)).unwrap();
        let (payload, encoded) = program.encode_to_vec(pointer(&mut sent), len);
        encoded.unwrap();
        program.decode(&payload, pointer(&mut received)).unwrap();
    }
    assert_eq!(text_of(&received), "longer than three");
    [sent, received].into_iter().for_each(free_string);
}

#[test]
fn a_copy_that_fails_destroys_what_it_has_made() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static FINALIZED: AtomicUsize = AtomicUsize::new(0);
    unsafe extern "C" fn finalize(message: *mut c_void) {
        FINALIZED.fetch_add(1, Ordering::Relaxed);
        // SAFETY: two strings.
        let strings: [[usize; 3]; 2] = unsafe { message.cast::<[[usize; 3]; 2]>().read() };
        strings.into_iter().for_each(free_string);
    }
    let bounded = MessageMember {
        string_upper_bound: 3,
        ..member(c"bounded", 16, 24)
    };
    let list = [member(c"text", 16, 0), bounded];
    let described = MessageMembers {
        fini_function: Some(finalize),
        ..members(c"Texts", 48, &list)
    };
    // SAFETY: the members are those of two strings.
    let program = Arc::new(unsafe { Program::compile(&described, Language::C) }.unwrap());
    let copy = |bounded: [usize; 3]| {
        let mut sent = [owned_string("any text"), bounded];
        // SAFETY: an initialized struct of the type.
        let copied = unsafe { Struct::copy_of(&program, pointer(&mut sent)) };
        sent.into_iter().for_each(free_string);
        copied
    };
    // As others do, a string beyond its bound is copied.
    let made = copy(owned_string("abcd")).unwrap();
    // SAFETY: an initialized struct of the type.
    let [_, bounded] = unsafe { made.address().cast::<[[usize; 3]; 2]>().read() };
    assert_eq!(
        (text_of(&bounded), FINALIZED.load(Ordering::Relaxed)),
        ("abcd".into(), 0)
    );
    drop(made);
    assert_eq!(FINALIZED.load(Ordering::Relaxed), 1);
    let failure = copy([0, 3, 4]).err().unwrap();
    assert!(
        failure.text.contains("was not initialized"),
        "{}",
        failure.text
    );
    assert_eq!(FINALIZED.load(Ordering::Relaxed), 2);
    // Without a fini function, memory of the copy could not be freed.
    let unknown = members(c"Texts", 48, &list);
    // SAFETY: as above.
    let program = unsafe { Program::compile(&unknown, Language::C) }.unwrap();
    assert!(!program.can_copy());
}

#[test]
fn a_sequence_that_gets_no_memory_fails_the_copy() {
    unsafe extern "C" fn refuse(_: *mut c_void, _: usize) -> bool {
        false
    }
    unsafe extern "C" fn element(sequence: *const c_void, at: usize) -> *const c_void {
        // SAFETY: the data of a sequence of strings.
        unsafe { sequence.cast::<*const [usize; 3]>().read().add(at).cast() }
    }
    unsafe extern "C" fn finalize(_: *mut c_void) {}
    let texts = MessageMember {
        is_array: true,
        size_function: Some(sequence_size),
        get_const_function: Some(element),
        resize_function: refuse as *const c_void,
        ..member(c"texts", 16, 0)
    };
    let list = [texts];
    let described = MessageMembers {
        fini_function: Some(finalize),
        ..members(c"Texts", 24, &list)
    };
    // SAFETY: the members are those of a sequence of strings.
    let program = Arc::new(unsafe { Program::compile(&described, Language::C) }.unwrap());
    let mut elements = [owned_string("text")];
    let mut sent = [elements.as_mut_ptr().expose_provenance(), 1, 1];
    // SAFETY: an initialized struct of the type.
    let failure = unsafe { Struct::copy_of(&program, pointer(&mut sent)) }
        .err()
        .unwrap();
    assert_eq!(failure.kind, FailureKind::Memory);
    // An empty one needs none.
    let mut empty = [0_usize; 3];
    // SAFETY: as above.
    assert!(unsafe { Struct::copy_of(&program, pointer(&mut empty)) }.is_ok());
    elements.into_iter().for_each(free_string);
}

#[test]
fn a_copy_of_a_boolean_is_0_or_1_wherever_it_lies() {
    use std::mem::offset_of;
    #[repr(C)]
    struct Inner {
        number: u16,
        flag: u8,
    }
    #[repr(C)]
    struct Flags {
        number: u8,
        flag: u8,
        few: [u8; 2],
        inner: [Inner; 2],
    }
    #[repr(C)]
    struct WithSequence {
        flags: [usize; 3],
        flag: u8,
    }
    unsafe extern "C" fn element(sequence: *const c_void, at: usize) -> *const c_void {
        // SAFETY: a sequence of bytes.
        let data = unsafe { sequence.cast::<usize>().read() };
        std::ptr::with_exposed_provenance(data + at)
    }
    unsafe extern "C" fn finalize(message: *mut c_void) {
        // SAFETY: the struct, whose sequence has memory of malloc or none.
        unsafe {
            let [data, ..] = (*message.cast::<WithSequence>()).flags;
            strings::free(std::ptr::with_exposed_provenance_mut(data));
        }
    }
    let inner_list = [
        member(c"number", 10, offset_of!(Inner, number)),
        member(c"flag", 6, offset_of!(Inner, flag)),
    ];
    let inner = members(c"Inner", size_of::<Inner>(), &inner_list);
    let handle = crate::introspection::MessageTypeSupport {
        typesupport_identifier: null(),
        data: std::ptr::from_ref(&inner).cast(),
        func: None,
        get_type_hash_func: None,
        get_type_description_func: null(),
        get_type_description_sources_func: null(),
    };
    let list = [
        member(c"number", 8, offset_of!(Flags, number)),
        member(c"flag", 6, offset_of!(Flags, flag)),
        array(c"few", 6, offset_of!(Flags, few), 2),
        MessageMember {
            members: &raw const handle,
            ..array(c"inner", 18, offset_of!(Flags, inner), 2)
        },
    ];
    let flags = members(c"Flags", size_of::<Flags>(), &list);
    // SAFETY: the members are those of `Flags`.
    let program = Arc::new(unsafe { Program::compile(&flags, Language::C) }.unwrap());
    assert!(program.is_flat());
    let mut sent = Flags {
        number: 0x80,
        flag: 0x80,
        few: [0, 2],
        inner: [(0x8080, 0xff), (2, 0)].map(|(number, flag)| Inner { number, flag }),
    };
    // SAFETY: initialized structs of the type.
    let received = unsafe {
        let copy = Struct::copy_of(&program, pointer(&mut sent)).unwrap();
        let copy = copy.address().cast::<Flags>();
        // Member by member: the copy may leave gaps uninitialized.
        (
            ((*copy).number, (*copy).flag, (*copy).few),
            [0, 1].map(|at: usize| {
                let inner = (&raw const (*copy).inner).cast::<Inner>().add(at);
                ((*inner).number, (*inner).flag)
            }),
        )
    };
    assert_eq!(received, ((0x80, 1, [0, 1]), [(0x8080, 1), (2, 0)]));

    let sequence = MessageMember {
        is_array: true,
        size_function: Some(sequence_size),
        get_const_function: Some(element),
        ..member(c"flags", 6, offset_of!(WithSequence, flags))
    };
    let list = [sequence, member(c"flag", 6, offset_of!(WithSequence, flag))];
    let described = MessageMembers {
        fini_function: Some(finalize),
        ..members(c"WithSequence", size_of::<WithSequence>(), &list)
    };
    // SAFETY: the members are those of `WithSequence`.
    let program = Arc::new(unsafe { Program::compile(&described, Language::C) }.unwrap());
    let mut elements = [0x80_u8, 0, 1, 0xff];
    let mut sent = WithSequence {
        flags: [elements.as_mut_ptr().expose_provenance(), 4, 4],
        flag: 0x80,
    };
    // SAFETY: an initialized struct of the type.
    let copy = unsafe { Struct::copy_of(&program, pointer(&mut sent)) }.unwrap();
    // SAFETY: as above, and a sequence of four bytes.
    let (received, flag) = unsafe {
        let received = copy.address().cast::<WithSequence>();
        let [data, len, _] = (*received).flags;
        assert_eq!(len, 4);
        let data = std::ptr::with_exposed_provenance::<[u8; 4]>(data);
        (data.read(), (*received).flag)
    };
    assert_eq!((received, flag), ([1, 0, 1, 1], 1));
}

/// As rosidl's size function of a sequence in C.
unsafe extern "C" fn sequence_size(sequence: *const c_void) -> usize {
    // SAFETY: data, size and capacity.
    unsafe { *sequence.cast::<usize>().add(1) }
}

#[test]
fn a_sequence_of_numbers_reuses_its_memory_and_is_empty_after_a_failure() {
    let numbers = MessageMember {
        is_array: true,
        size_function: Some(sequence_size),
        ..member(c"numbers", 15, 0)
    };
    let list = [numbers];
    let members = members(c"Numbers", 24, &list);
    // SAFETY: the members are those of a sequence.
    let program = unsafe { Program::compile(&members, Language::C) }.unwrap();
    let payload = |numbers: &[u64]| {
        let len = u32::try_from(numbers.len()).unwrap();
        let mut bytes = [&[0, 1, 0, 0][..], &len.to_le_bytes(), &[0; 4]].concat();
        bytes.extend(numbers.iter().flat_map(|one| one.to_le_bytes()));
        bytes
    };
    // A zeroed sequence of C is empty.
    let mut sequence = [0_usize; 3];
    let mut decode = |bytes: &[u8]| {
        // SAFETY: an initialized struct of the type.
        let decoded = unsafe { program.decode(bytes, pointer(&mut sequence)) };
        let [data, len, _] = sequence;
        let mut numbers = vec![0_u64; len];
        if len > 0 {
            // SAFETY: as many numbers as `decode` has written.
            unsafe {
                let data = std::ptr::with_exposed_provenance::<u64>(data);
                numbers.as_mut_ptr().copy_from_nonoverlapping(data, len);
            }
        }
        (decoded.is_ok(), data, numbers)
    };
    let (_, first, numbers) = decode(&payload(&[7, 8, 9]));
    assert_eq!(numbers, [7, 8, 9]);
    let (_, second, numbers) = decode(&payload(&[5, 6]));
    assert_eq!((second, numbers), (first, vec![5, 6]));
    let (_, _, numbers) = decode(&payload(&[1; 100]));
    assert_eq!(numbers, [1; 100]);
    // Eight bytes are there, but the padding before them makes them too few.
    let mut short = payload(&[1]);
    short.truncate(short.len() - 4);
    assert_eq!(decode(&short), (false, decode(&payload(&[])).1, vec![]));
}

#[test]
fn a_sequence_whose_object_is_unknown_is_resized_by_its_typesupport_alone() {
    unsafe extern "C" fn other_size(_: *const c_void) -> usize {
        1
    }
    let numbers = MessageMember {
        is_array: true,
        size_function: Some(other_size),
        ..member(c"numbers", 15, 0)
    };
    let list = [numbers];
    let members = members(c"Numbers", 24, &list);
    // SAFETY: the members are those of a sequence.
    let program = unsafe { Program::compile(&members, Language::C) }.unwrap();
    let payload = [[0, 1, 0, 0], [0; 4]].concat();
    let mut sequence = [0_usize; 3];
    // SAFETY: an initialized struct of the type.
    let failure = unsafe { program.decode(&payload, pointer(&mut sequence)) }.unwrap_err();
    assert!(failure.text.contains("lacks an access function"));
}

/// As `rosidl::Buffer` in C++: an object of which only its functions know the content.
#[test]
fn a_buffer_is_read_and_written_by_its_functions_alone() {
    type Buffer = Box<Vec<u8>>;
    unsafe extern "C" fn size(buffer: *const c_void) -> usize {
        // SAFETY: the object is a buffer. Another one would crash here.
        unsafe { &*buffer.cast::<Buffer>() }.len()
    }
    unsafe extern "C" fn element(buffer: *const c_void, at: usize) -> *const c_void {
        // SAFETY: as above.
        let buffer = unsafe { &*buffer.cast::<Buffer>() };
        buffer[at..].as_ptr().cast()
    }
    unsafe extern "C" fn element_mut(buffer: *mut c_void, at: usize) -> *mut c_void {
        // SAFETY: as above.
        let buffer = unsafe { &mut *buffer.cast::<Buffer>() };
        buffer[at..].as_mut_ptr().cast()
    }
    unsafe extern "C" fn resize(buffer: *mut c_void, len: usize) {
        // SAFETY: as above.
        unsafe { &mut *buffer.cast::<Buffer>() }.resize(len, 0);
    }
    let bytes = MessageMember {
        is_array: true,
        size_function: Some(size),
        get_const_function: Some(element),
        get_function: Some(element_mut),
        resize_function: resize as *const c_void,
        ..member(c"bytes", 8 | type_id::BUFFER, 0)
    };
    let list = [bytes];
    let described = members(c"Bytes", size_of::<Buffer>(), &list);
    // SAFETY: the members are those of a buffer.
    let program = unsafe { Program::compile(&described, Language::Cpp) }.unwrap();
    let mut sent: Buffer = Box::new(vec![1, 2, 3]);
    let buffer = |content: &[u8]| -> Buffer { Box::new(content.to_vec()) };
    // SAFETY: initialized structs of the type.
    unsafe {
        let len = program.serialized_len(pointer(&mut sent)).unwrap();
        let (cdr, encoded) = program.encode_to_vec(pointer(&mut sent), len);
        encoded.unwrap();
        assert_eq!(cdr, [0, 1, 0, 0, 3, 0, 0, 0, 1, 2, 3]);
        let [mut decoded, mut copied, mut moved] = [&[9][..], &[], &[7; 5]].map(buffer);
        program.decode(&cdr, pointer(&mut decoded)).unwrap();
        program
            .copy(pointer(&mut sent), pointer(&mut copied))
            .unwrap();
        program
            .move_into(pointer(&mut sent), pointer(&mut moved))
            .unwrap();
        assert_eq!(
            [decoded, copied, moved],
            [(); 3].map(|()| buffer(&[1, 2, 3]))
        );
    }
    // SAFETY: as above.
    let fields = unsafe { IntrospectedType::new(&described) }.describe();
    let field = &fields.unwrap().type_description.fields[0].field_type;
    assert_eq!(
        field.type_id,
        pteros_msg::describe::type_id::UINT8 + pteros_msg::describe::type_id::UNBOUNDED_SEQUENCE
    );
}
