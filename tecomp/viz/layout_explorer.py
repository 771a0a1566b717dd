"""Interactive HTML page of a layout."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from tecomp.drawing.canvas import HUES, clean
from tecomp.drawing.svg import HtmlPage
from tecomp.errors import InternalError, LayoutError
from tecomp.ir.nodes.expr import Binary, Call, Cast, Compare, Const, Expr, Not, Select, Var
from tecomp.ir.nodes.operators import BinOp
from tecomp.ir.traversal.rewrite import children, free_variables, post_order
from tecomp.layout.core.layout import Layout, formula

_OPERATORS = {
    BinOp.ADD: "{0}+{1}", BinOp.SUB: "{0}-{1}", BinOp.MUL: "{0}*{1}",
    BinOp.FLOORDIV: "fd({0},{1})",
    BinOp.MOD: "fm({0},{1})", BinOp.MIN: "Math.min({0},{1})", BinOp.MAX: "Math.max({0},{1})",
    BinOp.AND: "({0}&&{1})", BinOp.OR: "({0}||{1})", BinOp.BITAND: "bits({0},'&',{1})",
    BinOp.BITOR: "bits({0},'|',{1})", BinOp.BITXOR: "bits({0},'^',{1})",
    BinOp.SHL: "{0}*2**{1}", BinOp.SHR: "fd({0},2**{1})",
}


@dataclass
class Sizes:
    """Registry of the constant divisors of indices, which a reader of the page may change.

    Attributes:
        found: Number of each pair of a divisor and the names of the indices that it divides.
    """

    found: dict[tuple[int, tuple[str, ...]], int] = field(default_factory=dict)

    def number(self, value: int, names: tuple[str, ...]) -> int:
        """Return the number of a divisor; equal divisors of the same indices share one number."""
        return self.found.setdefault((value, names), len(self.found))


def function_text(
    name: str, variables: Sequence[Var], results: Sequence[Expr], sizes: Sizes | None = None
) -> str:
    """Return a JavaScript function that maps index and size lists to a list of results.

    Args:
        name: Function name.
        variables: Index variables, in order.
        results: Result expressions.
        sizes: Registry that receives the divisors which become parameters. Default: divisors
            stay constant.

    Raises:
        InternalError: If an expression contains an operation that index maps do not have.
    """
    known: dict[int, str] = {}
    inputs = {variable: f"x[{k}]" for k, variable in enumerate(variables)}
    lines: list[str] = []
    for node in post_order(*results):
        text = _text(node, known, inputs, sizes)
        if isinstance(node, Var | Const):
            known[id(node)] = text
            continue
        known[id(node)] = f"t{len(lines)}"
        lines.append(f"const t{len(lines)}={text};")
    returned = ",".join(known[id(node)] for node in results)
    return f"function {name}(x,c){{{''.join(lines)}return [{returned}];}}"


def _text(
    node: Expr, known: Mapping[int, str], inputs: Mapping[Var, str], sizes: Sizes | None
) -> str:
    parts = [known[id(part)] for part in children(node)]
    match node:
        case Var():
            return inputs[node]
        case Const():
            return f"({int(node.value)})"
        case Binary(op, a, b) if op in _OPERATORS:
            divides = op in (BinOp.FLOORDIV, BinOp.MOD) and isinstance(b, Const)
            if sizes is not None and divides and isinstance(b, Const) and b.value > 1:
                names = tuple(variable.name for variable in free_variables(a))
                parts[1] = f"c[{sizes.number(int(b.value), names)}]"
            return _OPERATORS[op].format(*parts)
        case Cast():
            return f"Number({parts[0]})"
        case Compare():
            return f"({parts[0]}{node.op.value}{parts[1]})"
        case Not():
            return f"!{parts[0]}"
        case Select() | Call("if_then_else"):
            return f"({parts[0]}?{parts[1]}:{parts[2]})"
        case Call("abs"):
            return f"Math.abs({parts[0]})"
    raise InternalError("explore: `{node}` is not an operation of index maps", node=node)


_PAGE = """\
<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>@title@</title><style>
body{margin:20px;font:14px system-ui,'DejaVu Sans',sans-serif;background:#fff;color:#1a1d21}
h1{font-size:18px;margin:0 0 4px}h2{font-size:14px;margin:18px 0 6px}
code,output,.mono{font-family:ui-monospace,'DejaVu Sans Mono',monospace}
.soft{color:#59626d}.bad{color:#b3261e}label{display:grid;grid-template-columns:190px 260px auto;
gap:10px;align-items:center;margin:2px 0}input{width:100%}
#answer{font-size:16px;line-height:1.6}svg{display:block;margin-top:8px}
@media (prefers-color-scheme:dark){body{background:#16191d;color:#eef1f4}.soft{color:#aab2bd}
.bad{color:#ff8a80}}
</style></head><body>
<h1>@title@</h1><code>@formula@</code>
<p class="soft">Move a slider: the page works out where an element lives, and which is at a place.
Shape and sizes may be changed as well; the formula then holds for the new ones.</p>
<h2>Element</h2><div id="element"></div><div id="answer" class="mono"></div>
<h2>Place</h2><div id="place"></div><div id="back" class="mono"></div>
<h2>Around the element</h2><div id="view"></div>
<h2>Shape and sizes</h2><div id="shape"></div><div id="sizes"></div>
<p id="note" class="soft"></p>
<script>
'use strict';
const L=@data@;
const fm=(a,b)=>((a%b)+b)%b, fd=(a,b)=>(a-fm(a,b))/b;
const bits=(a,op,b)=>{const x=BigInt(a),y=BigInt(b);
  return Number(op==='&'?x&y:op==='|'?x|y:x^y);};
@place@
@back@
const S={shape:[...L.shape],sizes:L.sizes.map(s=>s.value),element:L.shape.map(()=>0),place:[]};
const same=()=>S.shape.every((n,k)=>n===L.shape[k])&&S.sizes.every((n,k)=>n===L.sizes[k].value);
const count=()=>S.shape.reduce((a,b)=>a*b,1);
const LIMIT=1<<21;
let table=null;
function indexOf(n){const at=[];for(let k=S.shape.length-1;k>=0;k--){at[k]=n%S.shape[k];
  n=Math.floor(n/S.shape[k]);}return at;}
function build(){
  table={extents:[...L.physical],elements:null,clash:null};
  if(same()&&L.hasBack)return;
  if(count()>LIMIT){table.extents=null;return;}
  const all=[];let most=L.physical.map(()=>1);
  for(let n=0;n<count();n++){const p=placeOf(indexOf(n),S.sizes);all.push(p);
    p.forEach((v,k)=>{if(v+1>most[k])most[k]=v+1;});}
  L.moduli.forEach((m,k)=>{if(m!==null)most[k]=m.size===null?m.value:S.sizes[m.size];});
  table.extents=most;table.elements=new Map();
  all.forEach((p,n)=>{const o=offset(p,most);
    if(table.elements.has(o)&&!table.clash)table.clash=[indexOf(table.elements.get(o)),indexOf(n)];
    table.elements.set(o,n);});
}
function offset(p,extents){return p.reduce((a,v,k)=>a*extents[k]+v,0);}
const inside=e=>e.every((v,k)=>v>=0&&v<S.shape[k]);
const explore={
  set(what,k,value){S[what][k]=value;if(what==='shape'||what==='sizes'){build();}
    S.element=S.element.map((v,k)=>Math.min(v,Math.max(S.shape[k]-1,0)));},
  extents(){return table.extents;},
  place(e){return placeOf(e,S.sizes);},
  offset(e){return table.extents&&offset(this.place(e),table.extents);},
  core(p){return L.grid.map(k=>p[k]);},
  inCore(p){const k=L.physical.map((_,k)=>k).filter(k=>!L.grid.includes(k));
    return offset(k.map(a=>p[a]),k.map(a=>table.extents[a]));},
  element(p){
    if(!table.extents)return undefined;
    if(table.elements){const n=table.elements.get(offset(p,table.extents));
      return n===undefined?null:indexOf(n);}
    const e=backOf(p,S.sizes);
    return inside(e)&&this.place(e).every((v,k)=>v===p[k])?e:null;},
  clash(){return table.clash;},
};
window.explore=explore;
function slider(parent,name,what,k,low,high){
  const label=document.createElement('label'),text=document.createElement('span'),
    input=document.createElement('input'),value=document.createElement('output');
  text.textContent=name;input.type='range';input.min=low;input.max=high;input.value=S[what][k];
  value.textContent=S[what][k];
  input.oninput=()=>{explore.set(what,k,Number(input.value));
    if(what==='element')S.place=explore.place(S.element);
    if(what==='place'){const e=explore.element(S.place);if(e)S.element=e;}
    draw(what);};
  label.append(text,input,value);parent.append(label);return [input,value,what,k];
}
let sliders=[];
function list(v){return '['+v.join(', ')+']';}
function sliders_of(){
  sliders=[];for(const id of ['element','place','shape','sizes'])
    document.getElementById(id).textContent='';
  const at=id=>document.getElementById(id);
  S.shape.forEach((n,k)=>sliders.push(slider(at('element'),L.names[k],'element',k,0,n-1)));
  (table.extents||[]).forEach((n,k)=>sliders.push(slider(at('place'),
    'place '+k+(L.grid.includes(k)?' (core)':''),'place',k,0,n-1)));
  L.shape.forEach((n,k)=>sliders.push(slider(at('shape'),'extent of '+L.names[k],'shape',k,1,2*n)));
  L.sizes.forEach((s,k)=>sliders.push(slider(at('sizes'),s.name,'sizes',k,1,2*s.value)));
}
function words(p){
  const parts=['place '+list(p)];
  if(L.grid.length)parts.push('core '+list(explore.core(p)));
  if(table.extents){const o=explore.inCore(p);parts.push('number '+o);
    if(L.bytes!==null)parts.push('byte '+o*L.bytes+(L.grid.length?' of its core':''));}
  return parts.join(', ');
}
function view(){
  const rank=S.shape.length,wide=rank?Math.min(S.shape[rank-1],24):1,
    high=rank>1?Math.min(S.shape[rank-2],12):1,svg=[];
  const j0=rank?Math.max(0,Math.min(S.element[rank-1]-12,S.shape[rank-1]-wide)):0,
    i0=rank>1?Math.max(0,Math.min(S.element[rank-2]-6,S.shape[rank-2]-high)):0;
  for(let i=0;i<high;i++)for(let j=0;j<wide;j++){
    const e=[...S.element];if(rank)e[rank-1]=j0+j;if(rank>1)e[rank-2]=i0+i;
    const p=explore.place(e),parts=L.grid.length?explore.core(p):p.slice(0,-1);
    const hue=parts.reduce((a,v)=>(a*3+v)%L.colours.length,0),here=e.every((v,k)=>v===S.element[k]);
    svg.push('<rect x="'+j*30+'" y="'+i*24+'" width="28" height="22" rx="2" fill="'+L.colours[hue]+
      '" data-at="'+e.join(',')+'"'+(here?' stroke="#d9694a" stroke-width="3"':'')+
      '><title>'+list(e)+' in '+words(p)+'</title></rect>');}
  const at=document.getElementById('view');
  at.innerHTML='<svg width="'+wide*30+'" height="'+high*24+'">'+svg.join('')+'</svg>';
  for(const r of at.querySelectorAll('rect'))r.onclick=()=>{
    S.element=r.dataset.at===''?[]:r.dataset.at.split(',').map(Number);
    S.place=explore.place(S.element);draw('element');};
}
function draw(what){
  if(what==='shape'||what==='sizes'||!what){S.place=explore.place(S.element);}
  if(!what){sliders_of();}
  if(what==='shape'||what==='sizes')for(const [input,,w,k] of sliders){
    if(w==='element')input.max=S.shape[k]-1;
    if(w==='place'&&table.extents)input.max=table.extents[k]-1;}
  for(const [input,value,w,k] of sliders){input.value=S[w][k];value.textContent=S[w][k];}
  const e=explore.element(S.place);
  document.getElementById('answer').textContent=
    list(S.element)+' is in '+words(explore.place(S.element));
  document.getElementById('back').textContent=e===undefined?'too many elements to look for one':
    words(S.place)+': '+(e?'element '+list(e):'padding');
  const clash=explore.clash(),note=document.getElementById('note');
  note.className=clash?'bad':'soft';
  note.textContent=clash?'This is not a layout: elements '+list(clash[0])+' and '+list(clash[1])+
    ' have the same address.':table.extents?'Physical shape '+list(table.extents)+': '+
    table.extents.reduce((a,b)=>a*b,1)+' places for '+count()+' elements.':
    'There are too many elements to work out the physical shape.';
  view();
}
build();draw();
</script></body></html>
"""


def explorer_page(layout: Layout) -> HtmlPage:
    """Build the explorer page of a layout.

    Raises:
        LayoutError: If the layout has no elements.
    """
    if not layout.num_elements:
        raise LayoutError(
            "explore: {dtype}{shape} has no elements; pass a shape without 0",
            kind="missing-input", dtype=layout.dtype, shape=list(layout.shape),
        )
    sizes = Sizes()
    indices = layout.index_map.initial_indices
    results = layout.index_map.final_indices
    forward = function_text("placeOf", indices, results, sizes)
    inverse = _inverse_map_script(layout)
    volume = layout.num_places
    data = {
        "shape": layout.shape, "physical": layout.physical_shape, "grid": layout.grid_axes,
        "names": [variable.name for variable in indices],
        "sizes": [
            {"value": value, "name": f"{value} of {', '.join(names) or 'a constant'}"}
            for value, names in sizes.found
        ],
        "moduli": _moduli(layout, sizes),
        "bytes": None if layout.nbytes % volume else layout.nbytes // volume,
        "hasBack": inverse is not None,
        "colours": [shades[1] for shades in HUES],
    }
    title = f"{layout.dtype}{list(layout.shape)}"
    parts = {
        "title": escape(clean(title)), "formula": escape(clean(formula(layout))), "place": forward,
        "back": inverse or "function backOf(){return [];}",
        # Names are arbitrary text; escaping `<` prevents a name from closing the script element.
        "data": json.dumps(data).replace("<", "\\u003c"),
    }
    return HtmlPage(re.sub(f"@({'|'.join(parts)})@", lambda found: parts[found[1]], _PAGE))


def _inverse_map_script(layout: Layout) -> str | None:
    """Return the JavaScript of the inverse map; None if no closed form is known."""
    try:
        inverse = layout.inverse
    except LayoutError:
        return None
    return function_text("backOf", inverse.initial_indices, inverse.final_indices)


def _moduli(layout: Layout, sizes: Sizes) -> list[dict[str, int | None] | None]:
    """Return the divisor of each physical axis whose extent is given by a remainder, else None."""
    found: list[dict[str, int | None] | None] = []
    for expr, extent in zip(layout.index_map.final_indices, layout.physical_shape, strict=True):
        match expr:
            case Binary(BinOp.MOD, a, Const(value)):
                names = tuple(variable.name for variable in free_variables(a))
                found.append({"value": extent, "size": sizes.found.get((int(value), names))})
            case _:
                found.append(None)
    return found
