"""HTML of the page that says what lowering did: one file, with its style and its keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from html import escape

_MOST_LINES = 3000
"""Of two texts that are compared; longer ones take too long."""

_AROUND = 3
"""Lines that stay the same which are shown beside those that do not."""

_STYLE = """
:root{color-scheme:light dark;--soft:#59626d;--line:#cbd2d9;
--new:#d9f2dd;--old:#fbdcdc;--mark:#fff0b3}
@media (prefers-color-scheme:dark){
:root{--soft:#aab2bd;--line:#3d4650;--new:#173d22;--old:#4d1f1f;--mark:#5c4a00}}
body{font:14px system-ui,sans-serif;margin:0 16px 50vh}
header{position:sticky;top:0;background:Canvas;border-bottom:1px solid var(--line);padding:8px 0}
h1{font-size:16px;display:inline;margin-right:16px}h2{font-size:15px;scroll-margin-top:64px}
nav{display:inline}nav a{margin-right:10px}.soft{color:var(--soft)}
pre{margin:0;font:12px/1.45 ui-monospace,monospace;overflow-x:auto}
pre div{min-height:1.45em}.n{background:var(--new)}.o{background:var(--old)}
.s{color:var(--soft)}.found{outline:1px solid}.same{background:var(--mark)}
.two{display:grid;grid-template-columns:1fr 1fr;gap:16px}.two>*{max-height:80vh;overflow:auto}
h2:has(+.soft),h2+.soft{display:inline-block;margin:8px 12px 0 0}
td{padding:0 8px}.bar{background:var(--soft);height:8px}
section.whole .d,section:not(.whole) .w{display:none}section.now h2{text-decoration:underline}
"""

_SCRIPT = """
const all=[...document.querySelectorAll('section')],box=document.querySelector('input')
let at=0
const go=k=>{at=Math.max(0,Math.min(all.length-1,k))
 all.forEach((s,i)=>s.classList.toggle('now',i===at));all[at].scrollIntoView()}
const seek=()=>{const word=box.value.toLowerCase();let first=null,count=0
 for(const d of document.querySelectorAll('pre div')){
  const hit=word&&d.textContent.toLowerCase().includes(word);d.classList.toggle('found',!!hit)
  if(hit){count++;if(!first&&d.offsetParent)first=d}}
 document.querySelector('#count').textContent=word?count+' lines':''
 if(first)first.scrollIntoView({block:'center'})}
box.addEventListener('input',seek)
addEventListener('keydown',e=>{if(e.target===box){if(e.key==='Escape')box.blur();return}
 if(e.key==='j')go(at+1);else if(e.key==='k')go(at-1)
 else if(e.key==='d')all[at].classList.toggle('whole')
 else if(e.key==='/'){e.preventDefault();box.focus()}})
for(const two of document.querySelectorAll('.two'))two.addEventListener('mouseover',e=>{
 const line=e.target.dataset&&e.target.dataset.line
 for(const d of two.querySelectorAll('[data-line]'))
  d.classList.toggle('same',!!line&&d.dataset.line===line)})
"""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page.

    Attributes:
        name: its heading.
        content: HTML.
    """

    name: str
    content: str


def page(title: str, sections: Sequence[Section], times: Sequence[tuple[str, float]]) -> str:
    """The page: its parts, and how long those took that are among `times`."""
    links = " ".join(f'<a href="#{escape(x.name)}">{escape(x.name)}</a>' for x in sections)
    parts = "".join(
        f'<section id="{escape(x.name)}"><h2>{escape(x.name)}</h2>{x.content}</section>'
        for x in sections
    )
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style><header><h1>{escape(title)}</h1><nav>{links}</nav><div>"
        '<input placeholder="search: /" aria-label="search"> <span id="count"></span> '
        '<span class="soft">j, k: next, previous part; d: differences, or all of it</span></div>'
        f"</header>{_table(times)}{parts}<script>{_SCRIPT}</script></html>\n"
    )


def _table(times: Sequence[tuple[str, float]]) -> str:
    longest = max((seconds for _, seconds in times), default=0.0) or 1.0
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td>{1e3 * seconds:.1f} ms</td><td>"
        f'<div class="bar" style="width:{240 * seconds / longest:.0f}px"></div></td></tr>'
        for name, seconds in times
    )
    return f"<table>{rows}</table>"


def plain(text: str) -> str:
    """Text as it is."""
    return f"<pre>{''.join(_line(line) for line in text.splitlines())}</pre>"


def differences(before: str, after: str) -> str:
    """What is new and what is gone between two texts, and the second one as a whole."""
    if before == after:
        return '<p class="soft">the same</p>'
    whole = f'<div class="w">{plain(after)}</div>'
    old, new = before.splitlines(), after.splitlines()
    if not old or max(len(old), len(new)) > _MOST_LINES:
        return plain(after)
    lines = []
    for group in SequenceMatcher(None, old, new).get_grouped_opcodes(_AROUND):
        lines.append(_line("...", "s"))
        for kind, i, j, k, n in group:
            if kind == "equal":
                lines += [_line(f"  {line}") for line in new[k:n]]
                continue
            lines += [_line(f"- {line}", "o") for line in old[i:j]]
            lines += [_line(f"+ {line}", "n") for line in new[k:n]]
    return f'<pre class="d">{"".join(lines)}</pre>{whole}'


def numbered(left: Sequence[tuple[int, str]], right: Sequence[tuple[int, str]]) -> str:
    """Two texts beside each other; lines of one number are marked together."""
    sides = (
        f"<pre>{''.join(_line(text, number=number) for number, text in side)}</pre>"
        for side in (left, right)
    )
    return f'<div class="two">{"".join(sides)}</div>'


def _line(text: str, kind: str = "", number: int = 0) -> str:
    style = f' class="{kind}"' if kind else ""
    told = f' data-line="{number}"' if number else ""
    return f"<div{style}{told}>{escape(text)}</div>"
