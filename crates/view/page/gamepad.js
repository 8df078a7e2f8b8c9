// Gamepads of the browser: axes as a command, only while the dead man's button is held.

import { h, setOptions, setText, store, stored } from "./dom.js";

/** Smaller deflections are the rest position of a worn stick. */
const DEAD_ZONE = 0.12;
/** Buttons and axes of the standard layout: left shoulder, left stick. */
const INITIAL = { button: 4, forward: 1, turn: 0 };
const BUTTONS_MAX = 32;
const AXES_MAX = 16;

function deflection(value) {
  if (!(Math.abs(value) > DEAD_ZONE)) return 0;
  return Math.sign(value) * Math.min(1, (Math.abs(value) - DEAD_ZONE) / (1 - DEAD_ZONE));
}

/** `[forward, left]` from -1 to 1; undefined unless the dead man's button is held. */
export function padCommand(pad, { button, forward, turn }) {
  if (!pad?.connected || !pad.buttons[button]?.pressed) return undefined;
  // Sticks count down and right as positive, robots forward and left.
  return [forward, turn].map((axis) => -deflection(pad.axes[axis] ?? 0) + 0);
}

export class Gamepads {
  constructor() {
    this.settings = { ...INITIAL, ...stored("gamepad", {}) };
    const choice = (name, key) => {
      const select = h("select", { "aria-label": name, onchange: () => {
        this.settings[key] = Number(select.value);
        store("gamepad", this.settings);
      } });
      return select;
    };
    this.selects = { button: choice("Dead man's button", "button"), forward: choice("Axis for forward", "forward"), turn: choice("Axis for turning", "turn") };
    this.name = h("span", { class: "name" });
    this.state = h("span", { class: "dim number" });
    const { button, forward, turn } = this.selects;
    this.controls = h("div", { class: "tools", hidden: true },
      h("label", {}, "hold ", button), h("label", {}, "forward ", forward), h("label", {}, "turn ", turn));
    this.element = h("fieldset", { class: "gamepad" }, h("legend", {}, "Gamepad"), h("div", { class: "tools" }, this.name, this.state), this.controls);
  }

  /** The first connected one. Browsers show none before one of its buttons was pressed. */
  get pad() {
    return [...(navigator.getGamepads?.() ?? [])].find((pad) => pad?.connected);
  }

  /** `[forward, left]`, or undefined while it does not drive. */
  read() {
    const { pad, settings } = this;
    this.controls.hidden = !pad;
    setText(this.name, pad ? pad.id.slice(0, 80) : "none: connect one and press a button of it");
    if (!pad) {
      setText(this.state, "");
      return undefined;
    }
    this.fill(pad);
    // A page in the background does not drive.
    const command = document.hasFocus() ? padCommand(pad, settings) : undefined;
    const pressed = pad.buttons.findIndex((button) => button.pressed);
    setText(this.state, command ? command.map((value) => value.toFixed(2)).join(", ") : pressed >= 0 ? `button ${pressed} is pressed` : `hold button ${settings.button} to drive`);
    return command;
  }

  fill(pad) {
    const indices = (count, max) => Array.from({ length: Math.min(count, max) }, (_, i) => String(i));
    const options = (select, values, word, chosen) => setOptions(select, values.map((value) => [value, `${word} ${value}`]), String(chosen));
    options(this.selects.button, indices(pad.buttons.length, BUTTONS_MAX), "button", this.settings.button);
    options(this.selects.forward, indices(pad.axes.length, AXES_MAX), "axis", this.settings.forward);
    options(this.selects.turn, indices(pad.axes.length, AXES_MAX), "axis", this.settings.turn);
  }
}
