//! Texts of Zenoh's errors for users: without source locations and debug output, and with
//! the remedy of the setting concerned.

/// Syntax of a setting in `ZENOH_CONFIG_OVERRIDE`.
pub const OVERRIDE_HINT: &str = "write KEY=VALUE with a key of Zenoh's configuration and a value in JSON5, as \
     mode=\"client\";connect/endpoints=[\"tcp/10.0.0.1:7447\"]";
/// Remedy for an unreadable configuration file.
pub const FILE_HINT: &str = "name a configuration file of Zenoh (.json5, .json or .yaml), or unset the variable to \
     have the defaults of rmw_zenoh_cpp";

/// The text of a Zenoh error in one line.
pub fn reason(error: &zenoh::Error) -> String {
    one_line(&without_sources(error.to_string()))
}

/// Removes source locations of Zenoh.
fn without_sources(mut text: String) -> String {
    while let Some(file_end) = text.find(".rs:") {
        let begin = text[..file_end].rfind(" at ").unwrap_or(file_end);
        let rest = text[file_end + 4..].trim_start_matches(|c: char| c.is_ascii_digit());
        let rest = rest.strip_prefix('.').unwrap_or(rest).to_owned();
        text.truncate(begin);
        text.push_str(&rest);
    }
    text
}

/// Extracts the message from Rust's debug format or several lines. Other text is
/// unchanged.
fn one_line(text: &str) -> String {
    if let Some(message) = quoted_after(text, "msg: ").or_else(|| quoted_after(text, "Str(")) {
        let place = text.split_once("Location { line: ").and_then(|(_, rest)| {
            let (line, rest) = rest.split_once(", column: ")?;
            Some((line, rest.split_once(' ')?.0))
        });
        return match place {
            Some((line, column)) if !message.contains("-->") => {
                format!("{message} (line {line}, column {column})")
            }
            _ => one_line(&message),
        };
    }
    // json5 appends the position: ` --> 1:1`, the line itself, and `= expected …`.
    let pointed = text.split_once("--> ").and_then(|(_, rest)| {
        let (place, rest) = rest.split_once('\n')?;
        let (line, column) = place.trim().split_once(':')?;
        let (_, message) = rest.rsplit_once("= ")?;
        Some(format!("{} (line {line}, column {column})", message.trim()))
    });
    pointed.unwrap_or_else(|| text.lines().map(str::trim).collect::<Vec<_>>().join(" "))
}

/// The unescaped string literal after a word.
fn quoted_after(text: &str, word: &str) -> Option<String> {
    let (_, rest) = text.split_once(&format!("{word}\""))?;
    let mut characters = rest.chars();
    let mut value = String::new();
    loop {
        match characters.next()? {
            '"' => return Some(value),
            '\\' => match characters.next()? {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
}

/// Remedy for a failed connection, by its reason. A fatal alert is the peer's error about
/// a certificate.
pub fn connection_hint(reason: &str) -> &'static str {
    if reason.contains("received fatal alert") {
        "; the other end refuses this session's certificate: check \
         transport/link/tls/connect_certificate, its dates, and that its authority is also that \
         of the other end"
    } else if reason.contains("invalid peer certificate") {
        "; this session refuses the other end's certificate: check its dates, and that its \
         authority is that of transport/link/tls/root_ca_certificate"
    } else if reason.contains("early eof") || reason.contains("Connection reset") {
        "; the other end closes the link: if it asks for TLS, write tls/ for tcp/; if it asks \
         for a password, set transport/auth/usrpwd"
    } else {
        "; start a router there by: pteros router; or correct connect/endpoints in \
         ZENOH_CONFIG_OVERRIDE or the file of ZENOH_SESSION_CONFIG_URI"
    }
}

/// Remedy for a router that cannot listen, by the reason and the transport of its
/// endpoints.
pub fn listen_hint(reason: &str, transport: &str) -> String {
    if reason.contains("Address already in use") {
        format!(
            "; if another router has the port, use that one or choose another by \
             ZENOH_CONFIG_OVERRIDE='listen/endpoints=[\"{transport}/[::]:7450\"]', with 0.0.0.0 \
             for [::] on a host without IPv6"
        )
    } else {
        format!(
            "; name addresses of this host, as \
             ZENOH_CONFIG_OVERRIDE='listen/endpoints=[\"{transport}/0.0.0.0:7447\"]'"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_is_taken_out_of_debug_output() {
        for (text, plain) in [
            (r#"Str("unknown key")"#, "unknown key"),
            (
                r#"JSON error: Message { msg: "unknown field `a`, expected `b`", location: Some(Location { line: 1, column: 15 }) }"#,
                "unknown field `a`, expected `b` (line 1, column 15)",
            ),
            (
                r#"Json5Err(Message { msg: " --> 1:1\n  |\n1 | tcp/[::]:7447\n  | ^---\n  |\n  = expected array or string", location: Some(Location { line: 1, column: 1 }) })"#,
                "expected array or string (line 1, column 1)",
            ),
            (
                " --> 2:3\n  |\n2 | nojson\n  | ^---\n  |\n  = expected array or string",
                "expected array or string (line 2, column 3)",
            ),
            ("No such file or directory", "No such file or directory"),
            ("two\n  lines", "two lines"),
            (r#"Str("never ends"#, r#"Str("never ends"#),
        ] {
            assert_eq!(one_line(text), plain);
        }
    }

    #[test]
    fn places_in_sources_are_left_out() {
        let text = "cannot listen at /registry/zenoh-1.10/src/a.rs:17. - Caused by b at c/d.rs:4.";
        let plain = without_sources(text.into());
        assert!(plain.starts_with("cannot listen"), "{plain}");
        assert!(!plain.contains(".rs"), "{plain}");
    }

    #[test]
    fn every_failure_has_a_way_out() {
        let refused = connection_hint("[127.0.0.1:7447: Connection refused]");
        assert!(refused.contains("pteros router"), "{refused}");
        let closed = connection_hint("Read error on TCP link: early eof");
        assert!(
            closed.contains("tls/") && closed.contains("usrpwd"),
            "{closed}"
        );
        let taken = listen_hint("[[::]:7447: Address already in use]", "tls");
        assert!(
            taken.contains("another router") && taken.contains("tls/[::]:7450"),
            "{taken}"
        );
        let elsewhere = listen_hint("invalid port value", "tcp");
        assert!(!elsewhere.contains("another router"), "{elsewhere}");
        assert!(elsewhere.contains("tcp/0.0.0.0:7447"), "{elsewhere}");
    }
}
