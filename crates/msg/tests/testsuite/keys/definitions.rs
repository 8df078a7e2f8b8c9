//! Types of these tests: each shows one form of a key, or of growth.

/// Name and text.
pub const DEFINITIONS: &[(&str, &str)] = &[
    // 12 bytes of key in XCDR2; XCDR1 would align it to 16.
    (
        "keyed/msg/Fixed",
        "int32 id # @key\nint64 big # @key\nstring text\n",
    ),
    (
        "keyed/msg/Inner",
        "# @appendable\nuint8 a # @key\nint64 skip\nint16 b # @key\n",
    ),
    ("keyed/msg/Point", "int32 x\nint16 y\n"),
    (
        "keyed/msg/Outer",
        "# @appendable\nInner inner # @key\nstring text\nPoint point # @key\n",
    ),
    (
        "keyed/msg/Lists",
        "Inner[2] inners # @key\nuint8[3] bytes # @key\nint32 n\n",
    ),
    // Has no key of its own, but a member that has.
    ("keyed/msg/Wrap", "Inner inner\nint32 z\n"),
    (
        "keyed/msg/Wrapped",
        "Wrap wrap # @key\nWrap[] more # @key\nint32 n\n",
    ),
    // Keys of at most 16 bytes, and of 17.
    ("keyed/msg/Tag", "string<=11 name # @key\n"),
    ("keyed/msg/Wide", "uint8[17] id # @key\n"),
    // One type before and after it grew.
    (
        "keyed/msg/Small",
        "# @appendable\nuint8 a\nInner[] inners\n",
    ),
    (
        "keyed/msg/Grown",
        "# @appendable\nuint8 a\nInner[] inners\nstring b \"none\"\nint64 c 7\nuint8[1000] d\n",
    ),
    ("keyed/msg/Smalls", "Small[] list\n"),
    ("keyed/msg/Growns", "Grown[] list\n"),
    ("keyed/msg/Nothing", "# @appendable\n"),
];
