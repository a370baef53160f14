// @ts-check
/** A question before something that cannot be undone. */
import { element } from "./dom.js";

/** Ask; return whether the answer is yes. @param {string} text @param {string} yes the label of its button
 *  @returns {Promise<boolean>} */
export function ask(text, yes) {
  return new Promise((resolve) => {
    const close = (/** @type {boolean} */ answer) => {
      dialog.close();
      dialog.remove();
      resolve(answer);
    };
    const dialog = element("dialog", { "aria-label": text, oncancel: () => close(false) }, element("p", {}, text),
      element("div", { class: "bar" },
        element("button", { type: "button", onclick: () => close(false) }, "Cancel"),
        element("button", { type: "button", class: "main", onclick: () => close(true) }, yes)));
    document.body.append(dialog);
    dialog.showModal();
  });
}
