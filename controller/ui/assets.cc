#include "controller/ui/assets.hh"

namespace trainer::ui {

const std::string_view kStyle =
    R"(:root { color-scheme: light dark; --line: #8885; --accent: #2a6fdb; }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 75rem; margin: 1rem auto; padding: 0 1rem; }
header { display: flex; gap: 1rem; align-items: baseline; }
header form { flex: 1; }
input { width: 100%; box-sizing: border-box; padding: .3rem; font: inherit; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 1.6rem; } h3 { font-size: 1rem; }
a { color: var(--accent); }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .25rem .6rem; border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
dl { display: flex; gap: .5rem 1rem; } dt { opacity: .7; } dd { margin: 0; }
small, dt { opacity: .75; }
.state { border: 1px solid var(--line); border-radius: 1em; padding: 0 .6em; white-space: nowrap; }
.failed { background: #c62828; color: #fff; } .finished { background: #2e7d32; color: #fff; }
.note { border-left: 4px solid #d98200; padding: .3rem .8rem; }
.cause { font-weight: 600; }
.lines, li { white-space: pre-wrap; overflow-wrap: anywhere; }
pre { border: 1px solid var(--line); padding: .6rem; max-height: 60vh; overflow: auto; font-size: 13px; white-space: pre-wrap; overflow-wrap: anywhere; }
figure { display: inline-block; width: 36rem; max-width: 100%; margin: .5rem 1rem .5rem 0; }
svg { width: 100%; overflow: visible; }
polyline { fill: none; stroke-width: 1.5; }
.axis { stroke: var(--line); } .curve { stroke: var(--accent); stroke-width: 2.5; } .last { fill: var(--accent); }
.estimate { stroke: var(--accent); stroke-dasharray: 3 5; }
)";

// The server renders everything: the script only asks for the changing part of the page again,
// while the page is seen and nothing in it is selected.
const std::string_view kScript = R"('use strict';
const main = document.querySelector('main');
const lost = document.querySelector('#lost');
const address = new URL(location.href);
address.searchParams.set('part', 'yes');
let shown = '';

function show(text) {
  const before = main.querySelector('#log');
  const isAtEnd = !before || before.scrollTop + before.clientHeight >= before.scrollHeight - 4;
  const at = before ? before.scrollTop : 0;
  if (text !== null) main.innerHTML = text;
  const log = main.querySelector('#log');
  if (log) log.scrollTop = isAtEnd || text === null ? log.scrollHeight : at;
}

async function refresh() {
  try {
    const answer = await fetch(address);
    const isPage = (answer.headers.get('Content-Type') || '').startsWith('text/html');
    if (!isPage) throw new Error('no page');
    const text = await answer.text();
    lost.hidden = true;
    if (text !== shown && getSelection().isCollapsed) show(shown = text);
  } catch (error) {
    lost.hidden = false;
  }
}

async function keepFresh() {
  show(null);
  for (;;) {
    await new Promise((done) => setTimeout(done, 2000));
    if (!document.hidden) await refresh();
  }
}
keepFresh();
)";

}  // namespace trainer::ui
