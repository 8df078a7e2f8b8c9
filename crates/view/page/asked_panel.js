// A panel whose rows ask the robot for their state, while the panel is shown.

import { Ticker } from "./dom.js";

/** `list()` makes the rows of the services that there are now, and each row has `ask()`. */
export function askedPanel(connection, { id, title, element, periodMs, list, rows }) {
  let isShown = false;
  const ticker = new Ticker(periodMs, refresh);

  function refresh() {
    list();
    for (const { ask } of rows.values()) ask();
  }

  connection.on("services", () => isShown && refresh());
  connection.on("info", () => isShown && list());
  return {
    id, title, element,
    show() {
      isShown = true;
      ticker.start();
    },
    hide() {
      isShown = false;
      ticker.stop();
    },
  };
}
