// Shows what has changed, once a second, while the page can be seen.
'use strict';
(() => {
  const main = document.querySelector('main[data-live]');
  if (!main) return;
  const unconnected = document.getElementById('unconnected');
  let source;
  const open = () => {
    source = new EventSource(main.dataset.live);
    source.onmessage = (event) => {
      unconnected.hidden = true;
      Idiomorph.morph(main, event.data, { morphStyle: 'innerHTML', ignoreActiveValue: true });
    };
    source.onerror = () => {
      unconnected.hidden = false;
      if (source.readyState === EventSource.CLOSED) { // it was refused: a browser gives up then
        source.close();
        source = undefined;
        setTimeout(() => { if (!source && !document.hidden) open(); }, 2000);
      }
    };
  };
  const close = () => {
    if (source) source.close();
    source = undefined;
  };
  document.addEventListener('visibilitychange', () => {
    close();
    if (!document.hidden) open();
  });
  addEventListener('pagehide', close);
  addEventListener('pageshow', (event) => { if (event.persisted) open(); });
  if (!document.hidden) open();
})();
