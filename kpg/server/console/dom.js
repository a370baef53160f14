// @ts-check
/** Elements without markup: text is always text, so nothing that a server sends can become HTML. */

/**
 * Return a new element. Properties are attributes; `on…` are listeners, `class` is the class, and false leaves one out.
 * @param {string} tag
 * @param {Record<string, any>} [properties]
 * @param {...(Node | string | number | null | undefined | false)} children
 * @returns {any}
 */
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  assign(made, properties);
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== false).map(asNode));
  return made;
}

/** The same for a drawing. @param {string} tag @param {Record<string, any>} [properties] @param {...(Node | string)} children
 *  @returns {SVGElement} */
export function drawn(tag, properties = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  assign(made, properties);
  made.append(...children);
  return made;
}

/** @param {Element} target @param {Record<string, any>} properties */
function assign(target, properties) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === false || value === undefined || value === null) continue;
    if (name.startsWith("on")) target.addEventListener(name.slice(2), value);
    else target.setAttribute(name, value === true ? "" : String(value));
  }
}

/** @param {any} child @returns {Node | string} */
function asNode(child) {
  return child instanceof Node ? child : String(child);
}

/** Set the text of an element if it has changed: an equal text would still cost a layout.
 *  @param {Element} target @param {string} text */
export function setText(target, text) {
  if (target.textContent !== text) target.textContent = text;
}
