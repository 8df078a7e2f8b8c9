// WebSocket that opens again with a growing back-off, with its state and events. connection.js
// speaks the protocol on it.

const SUBPROTOCOL = "foxglove.sdk.v1";
const RETRY_MS_MIN = 500;
const RETRY_MS_MAX = 8000;
/** The server sends statistics every second: it is silent if none came for this long. */
const SILENCE_MS = 4000;

export class Socket {
  /** `open` makes a WebSocket (another one in tests); `probe` asks why none opens. */
  constructor(url, { open = (to) => new WebSocket(to, [SUBPROTOCOL]), probe = async () => "" } = {}) {
    Object.assign(this, { url, open, probe });
    this.listeners = new Map();
    this.attempts = 0;
    this.state = { phase: "connecting", text: "connecting…" };
  }

  on(event, listener) {
    if (!this.listeners.has(event)) this.listeners.set(event, new Set());
    this.listeners.get(event).add(listener);
    return () => this.listeners.get(event).delete(listener);
  }

  emit(event, value) {
    for (const listener of this.listeners.get(event) ?? []) {
      try {
        listener(value);
      } catch (error) {
        // A panel's fault must not stop the others.
        console.error(error);
        if (event !== "status") this.addStatus({ level: 2, message: `page: ${error.message}` });
      }
    }
  }

  setState(phase, words) {
    this.state = { phase, text: words };
    this.emit("state", this.state);
  }

  connect() {
    clearTimeout(this.retryTimer);
    let socket;
    try {
      socket = this.open(this.url);
    } catch (error) {
      this.setState("lost", `the address cannot be opened: ${error.message}`);
      return;
    }
    this.socket = socket;
    socket.binaryType = "arraybuffer";
    socket.onopen = () => this.opened();
    socket.onmessage = ({ data }) => this.receive(data);
    socket.onclose = (event) => this.closed(socket, event);
  }

  opened() {
    this.forget();
    this.attempts = 0;
    this.lastReceived = Date.now();
    this.setState("open", "connected");
    this.send({ op: "pteros.hello" });
    clearInterval(this.silenceTimer);
    this.silenceTimer = setInterval(() => this.checkSilence(), 1000);
  }

  async closed(socket, { code, reason } = {}) {
    if (socket !== this.socket) return;
    const wasOpen = this.state.phase !== "connecting" && this.state.phase !== "lost";
    this.socket = undefined;
    clearInterval(this.silenceTimer);
    this.forget();
    const delay = Math.min(RETRY_MS_MAX, RETRY_MS_MIN * 2 ** this.attempts++);
    const why = reason ? ` (${reason})` : code && code !== 1006 ? ` (code ${code})` : "";
    this.setState("lost", `robot lost${why}: trying again…`);
    this.emit("channels");
    this.emit("services");
    this.emit("graph");
    this.emit("stats", this.stats);
    this.retryTimer = setTimeout(() => this.connect(), delay);
    if (wasOpen) return;
    const words = await this.probe();
    if (words && this.state.phase === "lost") this.setState("lost", words);
  }

  checkSilence() {
    if (this.state.phase !== "open" && this.state.phase !== "silent") return;
    const silent = Date.now() - this.lastReceived;
    if (silent > SILENCE_MS) {
      this.setState("silent", `nothing received for ${Math.round(silent / 1000)} s`);
    } else if (this.state.phase === "silent") {
      this.setState("open", "connected");
    }
  }

  close() {
    clearTimeout(this.retryTimer);
    clearInterval(this.silenceTimer);
    const socket = this.socket;
    this.socket = undefined;
    socket?.close();
  }

  send(value) {
    if (this.socket?.readyState === 1) this.socket.send(JSON.stringify(value));
  }

  sendBinary(op, words, ...parts) {
    if (this.socket?.readyState !== 1) return false;
    const length = parts.reduce((sum, part) => sum + part.length, 1 + 4 * words.length);
    const bytes = new Uint8Array(length);
    const view = new DataView(bytes.buffer);
    bytes[0] = op;
    words.forEach((word, index) => view.setUint32(1 + 4 * index, word, true));
    let at = 1 + 4 * words.length;
    for (const part of parts) {
      bytes.set(part, at);
      at += part.length;
    }
    this.socket.send(bytes);
    return true;
  }
}
