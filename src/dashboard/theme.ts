/*
 * Light, dark, or as the system is.
 */

const NAME = "memprefix-theme";
const THEMES = ["auto", "light", "dark"] as const;
type Theme = (typeof THEMES)[number];

/** The theme that was chosen. */
export function readTheme(): Theme {
  try {
    return THEMES.find((theme) => theme === localStorage.getItem(NAME)) ?? "auto";
  } catch {
    return "auto";
  }
}

/** Shows the page in a theme, and keeps the choice. */
export function applyTheme(theme: Theme): void {
  document.documentElement.dataset["theme"] = theme;
  try {
    localStorage.setItem(NAME, theme);
  } catch {
    // Storage is blocked: the choice lives as long as the page.
  }
  document.dispatchEvent(new CustomEvent("theme"));
}

/** The theme after this one. */
export function nextTheme(theme: Theme): Theme {
  return THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? "auto";
}

/** Calls back when colours change; until the signal aborts. */
export function onColours(signal: AbortSignal, changed: () => void): void {
  document.addEventListener("theme", changed, { signal });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed, { signal });
}
