// Lists the topics of the graph.
const token = new URLSearchParams(location.search).get("token") ?? "";
const socket = new WebSocket(`ws://${location.host}/?token=${encodeURIComponent(token)}`, ["foxglove.sdk.v1"]);
socket.onmessage = (event) => {
  if (typeof event.data !== "string") return;
  const message = JSON.parse(event.data);
  if (message.op !== "advertise") return;
  for (const channel of message.channels) {
    const row = document.createElement("li");
    row.textContent = `${channel.topic} [${channel.schemaName}]`;
    document.getElementById("topics").append(row);
  }
};
