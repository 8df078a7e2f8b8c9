//! Chromium, driven by its DevTools protocol: one page, whose faults are noted.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use data_encoding::BASE64;
use pteros_test_support::folder::Folder;
use serde_json::{Value, json};
use tungstenite::{Message, WebSocket};

/// Time for the whole test.
const DEADLINE: Duration = Duration::from_secs(100);
/// The page needs WebGL, also on hosts without a GPU. No sandbox: it serves pages of other
/// people, needs user namespaces, and does not start for root.
const ARGUMENTS: [&str; 11] = [
    "--headless=new",
    "--no-sandbox",
    "--remote-debugging-port=0",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--disable-dev-shm-usage",
    "--force-device-scale-factor=1",
];

/// The program: `$PTEROS_CHROMIUM`, or `chromium` of the search path.
pub fn find() -> Option<PathBuf> {
    if let Some(given) = std::env::var_os("PTEROS_CHROMIUM") {
        return Some(given.into());
    }
    let folders = std::env::var_os("PATH")?;
    let mut programs = std::env::split_paths(&folders).map(|folder| folder.join("chromium"));
    programs.find(|program| program.is_file())
}

/// A process that ends with its owner, also where the start fails.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A running browser with one page.
pub struct Browser {
    _process: Process,
    socket: WebSocket<TcpStream>,
    session: String,
    last_id: u64,
    /// Where the page comes from.
    origin: String,
    /// Errors of the console, and requests to other places.
    pub faults: Vec<String>,
    end: Instant,
    _profile: Folder,
}

impl Browser {
    /// Opens a page of that many pixels.
    pub fn open(program: &Path, url: &str, (width, height): (u32, u32)) -> Self {
        let profile = Folder::new("chromium");
        let end = Instant::now() + DEADLINE;
        let process = Command::new(program)
            .args(ARGUMENTS)
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg(format!("--window-size={width},{height}"))
            .arg("about:blank")
            // It looks for a session's bus otherwise, and says that there is none.
            .env_remove("DBUS_SESSION_BUS_ADDRESS")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        let mut process = Process(process);
        let lines = BufReader::new(process.0.stderr.take().unwrap()).lines();
        let (send, messages) = channel();
        // To its end: whoever does not read its messages stops it.
        std::thread::spawn(move || lines.for_each(|line| drop(line.map(|line| send.send(line)))));
        let left = || end.saturating_duration_since(Instant::now());
        let mut said = Vec::new();
        let address = loop {
            let line = messages.recv_timeout(left());
            let line =
                line.unwrap_or_else(|error| panic!("Chromium does not start: {error}; {said:?}"));
            if let Some(address) = line.strip_prefix("DevTools listening on ws://") {
                break address.to_owned();
            }
            said.push(line);
        };
        drop(messages);
        let (host, _) = address.split_once('/').unwrap();
        let stream = TcpStream::connect(host).unwrap();
        let patience = left().max(Duration::from_millis(1));
        stream.set_read_timeout(Some(patience)).unwrap();
        let opened = tungstenite::client::client(format!("ws://{address}"), stream);
        let mut browser = Self {
            _process: process,
            socket: opened.unwrap().0,
            session: String::new(),
            last_id: 0,
            origin: url.split("/?").next().unwrap().to_owned(),
            faults: Vec::new(),
            end,
            _profile: profile,
        };
        let created = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let target = json!({ "targetId": created["targetId"], "flatten": true });
        let attached = browser.call("Target.attachToTarget", target);
        browser.session = attached["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Runtime", "Log", "Network", "Page"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        let size =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        browser.call("Emulation.setDeviceMetricsOverride", size);
        browser.call("Page.navigate", json!({ "url": url }));
        browser
    }

    /// Calls a method of the protocol. Events that come meanwhile are looked at.
    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.last_id += 1;
        let id = self.last_id;
        let mut request = json!({ "id": id, "method": method, "params": parameters });
        if !self.session.is_empty() {
            request["sessionId"] = json!(self.session);
        }
        self.socket
            .send(Message::text(request.to_string()))
            .unwrap();
        loop {
            let left = self.end.saturating_duration_since(Instant::now());
            assert!(
                !left.is_zero(),
                "{method}: the deadline is over; {:?}",
                self.faults
            );
            self.socket.get_ref().set_read_timeout(Some(left)).unwrap();
            let message = self.socket.read();
            let message =
                message.unwrap_or_else(|error| panic!("{method}: {error}; {:?}", self.faults));
            let Message::Text(text) = message else {
                continue;
            };
            let message: Value = serde_json::from_str(&text).unwrap();
            if message["id"] == id {
                assert!(message["error"].is_null(), "{method}: {}", message["error"]);
                return message["result"].clone();
            }
            self.note(&message);
        }
    }

    /// Notes the faults among events.
    fn note(&mut self, event: &Value) {
        let parameters = &event["params"];
        let fault = match event["method"].as_str().unwrap_or_default() {
            "Runtime.consoleAPICalled" if parameters["type"] == "error" => &parameters["args"],
            "Runtime.exceptionThrown" => &parameters["exceptionDetails"],
            "Log.entryAdded" if parameters["entry"]["level"] == "error" => &parameters["entry"],
            "Network.requestWillBeSent" if self.is_foreign(&parameters["request"]["url"]) => {
                &parameters["request"]
            }
            "Network.webSocketCreated" if self.is_foreign(&parameters["url"]) => &parameters["url"],
            _ => return,
        };
        self.faults.push(fault.to_string());
    }

    fn is_foreign(&self, url: &Value) -> bool {
        let url = url.as_str().unwrap_or_default();
        let is_local = ["data:", "blob:"]
            .iter()
            .any(|scheme| url.starts_with(scheme));
        !is_local
            && !url
                .replacen("ws://", "http://", 1)
                .starts_with(&self.origin)
    }

    /// The value of an expression of the page's JavaScript, once its promise is settled.
    pub fn run(&mut self, expression: &str) -> Value {
        let parameters = json!({
            "expression": expression, "awaitPromise": true, "returnByValue": true,
        });
        let answer = self.call("Runtime.evaluate", parameters);
        let exception = &answer["exceptionDetails"]["exception"];
        assert!(
            exception.is_null(),
            "{}; {:?}",
            exception["description"],
            self.faults
        );
        answer["result"]["value"].clone()
    }

    /// A picture of the page as PNG in base 64; also a file beside the build.
    pub fn screenshot(&mut self, name: &str) -> String {
        let answer = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        let picture = answer["data"].as_str().unwrap().to_owned();
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("view");
        std::fs::create_dir_all(&folder).unwrap();
        let content = BASE64.decode(picture.as_bytes()).unwrap();
        std::fs::write(folder.join(format!("{name}.png")), content).unwrap();
        picture
    }
}
