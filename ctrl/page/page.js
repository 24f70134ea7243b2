// The page is whole as it comes. This makes it live: each event has what <main> is now.
"use strict";
(() => {
  const QUIET_MS = 15000; // longer than the daemon pauses between two looks
  const RETRY_MS = 5000;
  const live = document.getElementById("live");
  const pause = document.getElementById("pause");
  let source = null;
  let paused = false;
  let last = new Date();
  let timer = 0;

  // Changes what differs and nothing else, so that focus, selection and places stay.
  function change(was, now) {
    for (const { name } of [...was.attributes])
      if (!now.hasAttribute(name)) was.removeAttribute(name);
    for (const { name, value } of now.attributes)
      if (was.getAttribute(name) !== value) was.setAttribute(name, value);
    while (was.childNodes.length > now.childNodes.length) was.lastChild.remove();
    now.childNodes.forEach((to, i) => {
      const from = was.childNodes[i];
      if (!from) was.append(document.importNode(to, true));
      else if (from.nodeName !== to.nodeName) from.replaceWith(document.importNode(to, true));
      else if (to.nodeType === Node.ELEMENT_NODE) change(from, to);
      else if (from.data !== to.data) from.data = to.data;
    });
  }

  function tell(text, lost) {
    if (live.textContent !== text) live.textContent = text;
    live.classList.toggle("lost", lost);
    document.body.classList.toggle("stale", lost);
  }

  function lose() {
    const since = last.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
    tell(`\u2716 Not live since ${since}. What stands here is of then.`, true);
  }

  function watch() {
    clearTimeout(timer);
    timer = setTimeout(restart, QUIET_MS);
  }

  function on_event(event) {
    const now = new DOMParser().parseFromString(event.data, "text/html").querySelector("main");
    if (!now) return;
    change(document.querySelector("main"), now);
    document.title = now.dataset.title;
    last = new Date();
    tell("\u25cf Live", false);
    watch();
  }

  function stop() {
    clearTimeout(timer);
    if (source) source.close();
    source = null;
  }

  function start() {
    if (source || paused || document.hidden) return;
    source = new EventSource(`/events${location.search}`);
    source.onmessage = on_event;
    // A refusal ends it for good: it is asked again, as after a loss.
    source.onerror = () => {
      stop();
      lose();
      timer = setTimeout(start, RETRY_MS);
    };
    watch();
  }

  function restart() {
    stop();
    lose();
    start();
  }

  pause.addEventListener("click", () => {
    paused = !paused;
    pause.textContent = paused ? "Go on" : "Pause";
    if (!paused) {
      start();
      return;
    }
    stop();
    tell("\u23f8 Paused", false);
  });
  // Nobody looks at what is hidden, and the daemon need not work for it.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) stop();
    else start();
  });
  document.title = document.querySelector("main").dataset.title;
  pause.hidden = false;
  tell("Connecting\u2026", false);
  start();
})();
