//! Invalid launch files: each error is reported with its location.

use crate::reading::LaunchFolder;

/// All errors of a file.
fn errors(name: &str, text: &str) -> String {
    let folder = LaunchFolder::new();
    folder.write(name, text);
    match folder.plan(name, &[]) {
        Ok(plan) => panic!("{name} is fine: {plan:?}"),
        Err(errors) => errors.to_string(),
    }
}

#[test]
fn all_invalid_attributes_of_a_process_are_reported_at_once() {
    let text_of_errors = errors(
        "a.launch.xml",
        r#"<launch>
  <executable cmd="true" cwd="/no/such" output="nowhere" emulate_tty="maybe" respawn="perhaps"
    respawn_delay="soon" respawn_max_retries="few" sigterm_timeout="-1" sigkill_timeout="x"/>
</launch>"#,
    );
    for error in [
        "cwd: there is no folder /no/such",
        "output: \"nowhere\" is not an output destination",
        "emulate_tty: \"maybe\" is not a boolean",
        "respawn: \"perhaps\" is not a boolean",
        "respawn_delay: \"soon\" is not a duration",
        "respawn_max_retries: \"few\" is not a count",
        "sigterm_timeout: \"-1\" is not a duration",
        "sigkill_timeout: \"x\" is not a duration",
    ] {
        assert!(
            text_of_errors.contains(error),
            "{error} in\n{text_of_errors}"
        );
    }
    assert_eq!(text_of_errors.lines().count(), 8, "{text_of_errors}");
}

#[test]
fn errors_name_line_column_and_accepted_values() {
    let lines = include_str!("bad_input.txt").lines();
    for line in lines.filter(|line| !line.starts_with('#')) {
        let (file, message) = line.split_once(" => ").expect(line);
        let (name, text) = file.split_once(' ').expect(line);
        let text = text.replace("\\n", "\n");
        let text_of_errors = errors(name, &text);
        assert!(
            text_of_errors.contains(message),
            "{text}:\n{text_of_errors}"
        );
    }
}

#[test]
fn missing_oversized_and_binary_files_are_reported() {
    let folder = LaunchFolder::new();
    let of = |name: &str| folder.plan(name, &[]).unwrap_err().to_string();
    assert!(of("no.launch.xml").contains("cannot read launch file"));
    assert!(of("").contains("is a folder"));
    folder.write("large.launch.xml", &" ".repeat(5 << 20));
    assert!(of("large.launch.xml").contains("larger than 4 MiB"));
    std::fs::write(folder.text("no_text.launch.xml"), [b'<', 0xff]).unwrap();
    assert!(of("no_text.launch.xml").contains("byte 1 is not UTF-8"));
}

#[test]
fn nesting_recursion_and_action_count_have_limits() {
    let nested = |count: usize| "<group>".repeat(count) + &"</group>".repeat(count);
    let deep = errors("a.launch.xml", &format!("<launch>{}</launch>", nested(80)));
    assert!(deep.contains("64 deep"), "{deep}");
    let deeper = errors(
        "a.launch.xml",
        &format!("<launch>{}</launch>", nested(100_000)),
    );
    assert!(deeper.contains("64 deep"), "{deeper}");
    let yaml = "launch:\n".to_owned() + &"[".repeat(100_000);
    assert!(errors("a.launch.yaml", &yaml).contains("a.launch.yaml:"));

    let own = errors(
        "a.launch.xml",
        "<launch><include file=\"a.launch.xml\"/></launch>",
    );
    assert!(own.contains("the file includes itself"), "{own}");

    let folder = LaunchFolder::new();
    for number in 0..40 {
        let text = format!(
            "<launch><include file=\"{}.launch.xml\"/></launch>",
            number + 1
        );
        folder.write(&format!("{number}.launch.xml"), &text);
    }
    let chain = folder.plan("0.launch.xml", &[]).unwrap_err().to_string();
    assert!(
        chain.contains("31.launch.xml:1:24: files include each other more than 32 deep"),
        "{chain}"
    );

    let loops = r#"<for len="10000" name="i"><for len="10000" name="j"><let name="a" value="1"/></for></for>"#;
    let many = errors("a.launch.xml", &format!("<launch>{loops}</launch>"));
    assert!(many.contains("more than 100000 actions"), "{many}");
    let long = r#"<let name="a" value="xxxxxxxx"/><for len="40" name="i"><let name="a" value="$(var a)$(var a)"/></for>"#;
    let long = errors("a.launch.xml", &format!("<launch>{long}</launch>"));
    assert!(long.contains("longer than 4 MiB"), "{long}");
}

#[test]
fn thousands_of_damaged_files_are_read_or_refused_with_a_location() {
    const XML: &str = r#"<launch><arg name="n" default="2"/><group scoped="false"><let name="x" value="$(eval '$(var n) * 2')"/>
      <push_ros_namespace namespace="r"/><for len="$(var n)" name="i"><log message="$(index i) \$ $(if true 'a b' c)"/></for></group>
      <executable cmd="true 'a b'" respawn="false" output="screen"><env name="A" value="b"/></executable><timer period="1.5"><log message="é"/></timer></launch>"#;
    const YAML: &str = "launch:\n- arg: {name: n, default: '2'}\n- group:\n    scoped: false\n    children:\n    - let: {name: x, value: \"$(eval '$(var n) * 2')\"}\n- executable:\n    cmd: true 'a b'\n    env:\n    - {name: A, value: b}\n- timer:\n    period: 1.5\n    children:\n    - log: {message: é}\n";
    const PIECES: [&str; 14] = [
        "<", ">", "\"", "'", "$(", ")", "\\", "&#0;", "{", "[", "- ", "\n", "\u{0}", "$(var n)",
    ];
    let folder = LaunchFolder::new();
    let mut chance = fastrand::Rng::with_seed(7);
    let (mut fine, mut wrong) = (0, 0);
    for round in 0..1500 {
        let (name, text) = match round % 2 {
            0 => ("a.launch.xml", XML),
            _ => ("a.launch.yaml", YAML),
        };
        let mut letters: Vec<char> = text.chars().collect();
        for _ in 0..=chance.usize(..4) {
            let at = chance.usize(..letters.len().max(1));
            if letters.is_empty() {
                break;
            }
            match chance.usize(..4) {
                0 => drop(letters.remove(at)),
                1 => letters.truncate(at.max(1)),
                2 => {
                    let other = chance.usize(..letters.len());
                    letters.swap(at, other);
                }
                _ => {
                    let piece = PIECES[chance.usize(..PIECES.len())];
                    letters.splice(at..at, piece.chars());
                }
            }
        }
        let damaged: String = letters.into_iter().collect();
        // This test must not run commands.
        let damaged = damaged.replace("$(command", "$(var");
        folder.write(name, &damaged);
        match folder.plan(name, &[]) {
            Ok(_) => fine += 1,
            Err(errors) => {
                wrong += 1;
                for error in errors.iter() {
                    let location = error.location.as_ref();
                    let location = location.unwrap_or_else(|| panic!("{error}\n{damaged}"));
                    assert!(location.line > 0 && location.column > 0, "{error}");
                }
            }
        }
    }
    assert!(fine > 10 && wrong > 500, "{fine} fine, {wrong} wrong");
}

/// In one line or many: time that grows with the square would be a minute.
#[test]
fn tens_of_thousands_of_arguments_take_linear_time() {
    const COUNT: usize = 40_000;
    let folder = LaunchFolder::new();
    for between in ["", "\n"] {
        let argument = |at| format!("<arg name='{at:05}' default='é'/>{between}");
        let arguments: String = (0..COUNT).map(argument).collect();
        folder.write("a.launch.xml", &format!("<launch>{arguments}</launch>"));
        let plan = folder.plan("a.launch.xml", &[]).unwrap();
        assert_eq!(plan.arguments.len(), COUNT);
        // Columns are characters, so an é is one.
        let (line, column) = if between.is_empty() {
            (1, 9 + 31 * (COUNT - 1))
        } else {
            (COUNT, 1)
        };
        let location = &plan.arguments[COUNT - 1].location;
        let found = (location.line as usize, location.column as usize);
        assert_eq!(found, (line, column));
    }
}

/// Whatever a launch file names, and does not end, is refused.
#[test]
fn commands_fifos_and_attributes_have_limits() {
    let folder = LaunchFolder::new();
    let fifos = ["xml", "py"].map(|end| folder.text(&format!("fifo.launch.{end}")));
    let made = std::process::Command::new("mkfifo").args(&fifos).status();
    assert!(made.unwrap().success());
    let many: String = (0..40_000).map(|at| format!(" a{at}='{at}'")).collect();
    let of_keys = |count: usize| -> String { (0..count).map(|at| format!(" a{at}: 1,")).collect() };
    for (name, text, says) in [
        (
            "a.launch.xml",
            "<launch><log message=\"$(command yes)\"/></launch>".to_owned(),
            "\"yes\" has written more than 64 MiB",
        ),
        (
            "a.launch.xml",
            "<launch><log message=\"$(command 'sh -c \\'yes &gt;&amp;2\\'' ignore)\"/></launch>"
                .into(),
            "has written more than 64 MiB",
        ),
        (
            "a.launch.xml",
            "<launch><let name=\"command_timeout\" value=\"0.05\"/>\
             <log message=\"$(command 'sleep 1000')\"/></launch>"
                .into(),
            "\"sleep 1000\" has not ended within 0.05 s; the argument \"command_timeout\" gives",
        ),
        (
            "a.launch.xml",
            "<launch><let name=\"command_timeout\" value=\"never\"/>\
             <log message=\"$(command true)\"/></launch>"
                .into(),
            "\"never\"; write seconds above 0",
        ),
        (
            "a.launch.xml",
            "<launch><include file=\"$(dirname)/fifo.launch.xml\"/></launch>".into(),
            "it is a FIFO, not a regular file",
        ),
        (
            "a.launch.xml",
            "<launch><include file=\"$(dirname)/fifo.launch.py\"/></launch>".into(),
            "fifo.launch.py: it is a FIFO, not a regular file",
        ),
        (
            "a.launch.xml",
            "<launch><log message=\"$(file-content $(dirname)/fifo.launch.xml)\"/></launch>".into(),
            "it is a FIFO, not a regular file",
        ),
        (
            "a.launch.xml",
            "<launch><set_parameters_from_file filename=\"/dev/zero\"/></launch>".into(),
            "it is a device, not a regular file",
        ),
        (
            "a.launch.xml",
            format!("<launch><!-- ' --><log{many}/></launch>"),
            ":1:19: an element has more than 1000 attributes",
        ),
        (
            "a.launch.yaml",
            format!("launch:\n- log: {{{}}}\n", of_keys(2000)),
            "an element has more than 1000 attributes",
        ),
    ] {
        folder.write(name, &text);
        let errors = folder.plan(name, &[]).unwrap_err().to_string();
        assert!(errors.contains(says), "{says} in {errors}");
    }
}
