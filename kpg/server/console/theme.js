// @ts-check
/** Light and dark: as the system prefers, until the button chooses; the choice is kept in this browser. */

const KEY = "kpg theme";

/** @returns {"light" | "dark"} */
export function currentTheme() {
  const chosen = localStorage.getItem(KEY);
  if (chosen === "light" || chosen === "dark") return chosen;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

/** Let a button switch the theme; call a function after each change. @param {HTMLButtonElement} button
 *  @param {() => void} changed */
export function followTheme(button, changed) {
  const apply = () => {
    document.documentElement.dataset.theme = currentTheme();
    button.textContent = currentTheme() === "dark" ? "Light" : "Dark";
    changed();
  };
  button.addEventListener("click", () => {
    localStorage.setItem(KEY, currentTheme() === "dark" ? "light" : "dark");
    apply();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", apply);
  apply();
}

/** The value of a colour of the style sheet. @param {string} name @returns {string} */
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
