// @ts-nocheck: it runs in the browser, whose types this project has for page alone
// Owns: what the benchmark of the librarians' page measures inside the page, as `watch`: when books are in sight, how
// long frames take, how far things have shifted. It knows the page by its roles only.

globalThis.watch = (() => {
  let lastInput = 0;
  for (const type of ['keydown', 'click']) {
    addEventListener(type, ({ timeStamp }) => (lastInput = timeStamp), { capture: true, passive: true });
  }

  // As browsers count it: what moves within half a second after a key or a press is not a surprise.
  let shift = 0;
  let largest = { value: 0, of: '' };
  new PerformanceObserver((list) => {
    for (const { value, sources, hadRecentInput } of list.getEntries()) {
      if (hadRecentInput) continue;
      shift += value;
      if (value < largest.value) continue;
      const nodes = sources.map(({ node }) => node?.id || node?.className || node?.nodeName);
      largest = { value, of: nodes.join(', ') };
    }
  }).observe({ type: 'layout-shift', buffered: true });

  /** Whether these words have been searched for, and each row in sight has its book. */
  function isShown(words) {
    const list = document.querySelector('[role=grid]');
    const { top, bottom } = list.getBoundingClientRect();
    if ((new URL(location).searchParams.get('q') ?? '') !== words || list.ariaBusy === 'true') return false;
    const titles = [...list.querySelectorAll('[role=rowheader]')].filter((title) => {
      const box = title.getBoundingClientRect();
      return box.bottom > top && box.top < bottom;
    });
    return titles.length > 0 && titles.every(({ textContent }) => textContent !== '');
  }

  /** Milliseconds from a moment until books are in sight: the beginning of the frame after the one that has them. */
  function untilShown(words, since) {
    return new Promise((resolve) => {
      const look = () => {
        if (isShown(words)) requestAnimationFrame((now) => resolve(now - since()));
        else requestAnimationFrame(look);
      };
      requestAnimationFrame(look);
    });
  }

  /** The element whose rows are scrolled. */
  const scrolled = () => [...document.querySelectorAll('[role=grid] [role=rowgroup]')].at(-1);

  let frames = [];
  let isWatching = false;

  return {
    /** How far things have moved so far, as browsers count it, and what moved the furthest. */
    shift: () => ({ shift, largest }),

    /** Milliseconds from the last key or press. It may be called before that. */
    shownAfterInput: (words) => untilShown(words, () => lastInput),

    /** Moves the list to a place, such as 0.5 of the way. Milliseconds until books are in sight. */
    jump(words, share) {
      const { scrollHeight, clientHeight } = scrolled();
      const began = performance.now();
      scrolled().scrollTop = share * (scrollHeight - clientHeight);
      return new Promise((resolve) => requestAnimationFrame(resolve)).then(() => {
        return untilShown(words, () => began);
      });
    },

    /** How far the list is scrolled, from 0 to 1. */
    place() {
      const { scrollTop, scrollHeight, clientHeight } = scrolled();
      return scrollTop / (scrollHeight - clientHeight);
    },

    startFrames() {
      frames = [];
      isWatching = true;
      let before;
      const next = (now) => {
        if (before !== undefined) frames.push(now - before);
        before = now;
        if (isWatching) requestAnimationFrame(next);
      };
      requestAnimationFrame(next);
    },

    /** Milliseconds of each frame since the start. */
    stopFrames() {
      isWatching = false;
      return frames;
    },
  };
})();
