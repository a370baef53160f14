// @ts-check
/** Rendering in frames: however many changes arrive, each part of the page is drawn at most once a frame. */

/** @type {Set<() => void>} */
const waiting = new Set();
let isScheduled = false;

/** Call a function before the next frame; several calls until then are one. @param {() => void} draw */
export function beforeNextFrame(draw) {
  waiting.add(draw);
  if (isScheduled) return;
  isScheduled = true;
  requestAnimationFrame(() => {
    isScheduled = false;
    const draws = [...waiting];
    waiting.clear();
    for (const one of draws) one();
  });
}
