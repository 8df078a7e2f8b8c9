// Images panel: camera topics, raw and compressed, several beside each other.

import { empty, h, reconcile, store, stored } from "./dom.js";
import { COMPRESSED_IMAGE, imageCard, RAW_IMAGE } from "./image_card.js";

const SHOWN_MAX = 9;

export function imagesPanel({ connection }) {
  const chosen = new Set(stored("images", []));
  const chips = new Map();
  const cards = new Map();
  let isShown = false;
  const bar = h("div", { class: "tools chips" });
  const grid = h("div", { class: "images" });
  const hint = empty("The robot publishes no images.");
  const element = h("div", { class: "panel" }, bar, hint, grid);

  const channels = () => [...connection.channels.values()]
    .filter(({ schemaName }) => schemaName === RAW_IMAGE || schemaName === COMPRESSED_IMAGE)
    .sort((a, b) => (a.topic < b.topic ? -1 : 1));

  function sync() {
    const all = channels();
    hint.hidden = all.length > 0;
    if (all.length > 0 && !all.some(({ topic }) => chosen.has(topic))) {
      chosen.add((all.find(({ topic }) => !/depth|mask/.test(topic)) ?? all[0]).topic);
    }
    reconcile(bar, chips, all, ({ id }) => id, ({ topic }) => {
      const chip = h("button", { onclick: () => {
        if (!chosen.delete(topic) && chosen.size < SHOWN_MAX) chosen.add(topic);
        store("images", [...chosen]);
        sync();
      } }, topic);
      return { element: chip, update: () => chip.setAttribute("aria-pressed", String(chosen.has(topic))) };
    });
    const shown = isShown ? all.filter(({ topic }) => chosen.has(topic)) : [];
    reconcile(grid, cards, shown, ({ id }) => id, (channel) => imageCard(connection, channel));
  }

  connection.on("channels", sync);
  return {
    id: "images", title: "Images", element,
    show() {
      isShown = true;
      sync();
    },
    hide() {
      isShown = false;
      sync();
    },
  };
}
