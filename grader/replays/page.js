// Steps through a replay. Everything that stems from a student is set as text, never as HTML.
function show(root, data, dress) {
  const shadow = root.attachShadow({mode: "open"});
  const SVG = "http://www.w3.org/2000/svg";
  const last = data.frames.length - 1;
  const reduced = matchMedia("(prefers-reduced-motion: reduce)").matches;
  let step = data.start, pinned = "", alone = -1, playing = 0;

  const make = (tag, options = {}, ...children) => {
    const {text, ...attributes} = options;
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes))
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else if (value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
    if (text !== undefined) node.textContent = text;
    node.append(...children);
    return node;
  };
  const listed = (noun, numbers) => `${noun}${numbers.length > 1 ? "s" : ""} ${numbers.join(", ")}`;
  const bytes = count => count < 10000 ? `${count} B` : count < 1e7 ? `${(count / 1024).toFixed(1)} KiB` : `${(count / 1048576).toFixed(1)} MiB`;

  // What has been sent, and who waits, up to each step.
  const sums = [], waits = [], costs = [];
  data.frames.forEach((frame, k) => {
    const sent = frame.transfer ? frame.transfer.bytes : 0;
    sums.push((sums[k - 1] || 0) + sent);
    waits.push({...waits[k - 1], ...Object.fromEntries(frame.waits.map(wait => [wait.device, wait]))});
    const here = frame.stack[0] && frame.stack[0].join();
    costs.push(sent && here ? {...costs[k - 1], [here]: ((costs[k - 1] || {})[here] || 0) + sent} : costs[k - 1] || {});
  });
  const most = Math.max(1, ...data.frames.map(frame => frame.transfer ? frame.transfer.bytes : 0));
  const next = (from, way, wanted) => {
    for (let k = from + way; k >= 0 && k <= last; k += way) if (wanted(data.frames[k], k)) return k;
    return -1;
  };
  const sends = frame => frame.transfer || frame.waits.length;
  const turnOf = frame => frame.scopes.filter(scope => scope.startsWith("turn")).join(" · ");
  const deep = frame => frame.stack.length;
  const noDeeper = from => frame => deep(frame) <= deep(data.frames[from]);
  const newTurn = (frame, k) => turnOf(frame) && (!k || turnOf(frame) !== turnOf(data.frames[k - 1]));

  // The parts that stay.
  const button = (sign, label, act) => make("button", {type: "button", text: sign, "aria-label": label, title: label, onclick: act});
  const first = button("|◀", "First line (Home)", () => go(0));
  const before = button("◀", "One line back (←)", () => go(step - 1));
  const play = button("Play", "Play (space)", () => run());
  const after = button("▶", "One line on (→)", () => go(step + 1));
  const end = button("▶|", "Last line (End)", () => go(last));
  const jump = button("next collective", "Next collective (N)", () => go(next(step, 1, sends)));
  const turn = button("next turn", "Next turn of the loop (T)", () => go(next(step, 1, newTurn)));
  const past = button("over the call", "On to a line that is no deeper: past calls and loops (O)", () => go(next(step, 1, noDeeper(step))));
  const who = make("select", {"aria-label": "Which device", onchange: () => {alone = Number(who.value); draw();}});
  const where = make("span", {class: "where"});
  const slider = make("input", {type: "range", min: 0, max: last, value: 0, "aria-label": "Step", oninput: () => go(Number(slider.value))});
  const marks = make("div", {class: "marks", "aria-hidden": "true"}, ...data.frames.map(frame => {
    const mark = make("i", {class: [frame.transfer && "sends", frame.backward && "back", frame.waits.length && "stuck"].filter(Boolean).join(" ")});
    if (frame.transfer) mark.style.height = `${30 + 70 * frame.transfer.bytes / most}%`;
    return mark;
  }));
  const told = make("div", {class: "told", "aria-live": "polite"});
  const ended = make("div", {class: "ended", role: "status", text: data.ended});
  const rows = {};
  const source = make("div", {class: "source", tabindex: "0", role: "region", "aria-label": `Source of ${data.title}`});
  data.excerpts.forEach((excerpt, k) => {
    if (data.excerpts.length > 1) source.append(make("div", {class: "file", text: excerpt.file}));
    excerpt.lines.forEach((text, n) => {
      const lead = text.length - text.trimStart().length;
      const code = make("span", {class: "code", text: text.trim()}), cost = make("span", {class: "cost"});
      const row = make("div", {class: "row"}, make("span", {class: "number", text: excerpt.first + n}), code, cost);
      code.style.paddingLeft = `${lead + 2}ch`;
      rows[[k, excerpt.first + n]] = {row, code, cost, lead, text: text.trim()};
      source.append(row);
    });
  });
  const names = make("div", {class: "names", role: "group", "aria-label": "Which array"});
  const devices = make("div", {class: "devices"});
  const both = make("div", {class: "both"}, source, make("div", {}, names, devices));
  const frameOf = make("div", {class: "replay", tabindex: "0", role: "group", "aria-label": `Replay of ${data.title}`},
    make("div", {class: "bar"}, make("span", {class: "title", text: data.title}), first, before, play, after, end, past, jump, turn, who, where),
    ...(data.about ? [make("div", {class: "about", text: data.about})] : []), make("div", {class: "time"}, marks, slider), told, ended, both,
    make("div", {class: "help"}, ...["← →", " line   ", "O", " over the call   ", "N", " next collective   ", "T", " next turn   ", "space", " play   ", "Esc", " all devices"]
      .map((text, k) => k % 2 ? text : make("kbd", {text}))));
  // On the window, and before others: JupyterLab's shortcuts listen on the document. What has a meaning here stays here.
  window.addEventListener("keydown", press, true);

  function press(event) {
    if (!root.isConnected) window.removeEventListener("keydown", press, true);
    const path = event.composedPath(), typed = path[0];
    if (!path.includes(frameOf) || event.ctrlKey || event.metaKey || event.altKey) return;
    const acts = {
      ArrowLeft: () => go(step - 1), ArrowRight: () => go(step + 1), Home: () => go(0), End: () => go(last),
      n: () => go(next(step, 1, sends)), N: () => go(next(step, -1, sends)), t: () => go(next(step, 1, newTurn)), o: () => go(next(step, 1, noDeeper(step))),
      T: () => go(next(step, -1, newTurn)), Escape: () => {alone = -1; pinned = ""; draw();}, " ": run,
    };
    if (event.key === "Enter" && typed.classList.contains("device")) typed.click();
    else if (typed.tagName === "SELECT" || typed.tagName === "BUTTON" && [" ", "Enter"].includes(event.key) || event.key === "Tab")
      return event.stopPropagation();
    else if (acts[event.key]) acts[event.key]();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
  function go(wanted) {
    if (wanted < 0 || wanted > last) return;
    const on = wanted > step;
    step = wanted;
    draw();
    if (on && !reduced) fly(data.frames[step]);
  }
  function run() {
    clearInterval(playing);
    playing = playing ? 0 : setInterval(() => step < last && root.isConnected ? go(step + 1) : run(), reduced ? 1500 : 1000);
    if (playing && step === last) go(0);
    play.textContent = playing ? "Stop" : "Play";
  }

  function tell(frame) {
    const parts = [];
    if (frame.backward) parts.push(make("span", {class: "tag back", text: "backward"}));
    frame.scopes.forEach(scope => parts.push(make("span", {class: "tag", text: scope})));
    const transfer = frame.transfer;
    if (frame.note) parts.push(make("b", {text: frame.note}));
    else if (frame.waits.length) parts.push(make("b", {text: `${listed("device", frame.waits.map(w => w.device))} wait${frame.waits.length > 1 ? "" : "s"} in ${frame.waits[0].name} over ${frame.waits[0].axes}`}));
    else if (transfer) {
      const size = transfer.groups[0].length;
      parts.push(make("b", {text: `${transfer.name} over ${transfer.axes.join(", ")}`}), ` among ${size} devices each: a device sends ${bytes(transfer.bytes)}`);
    } else parts.push(make("b", {text: frame.operation}), frame.here.length < devicesOf(frame) ? ` on ${listed("device", frame.here)}` : " on each device for itself");
    parts.push(make("span", {class: "sum", text: ` · ${bytes(sums[step])} sent by each so far`}));
    told.replaceChildren(...parts);
  }
  const sizes = frame => data.meshes[frame.mesh];
  const devicesOf = frame => sizes(frame).reduce((all, [, size]) => all * size, 1);
  function placeOf(frame, device) {
    let rest = device;
    return [...sizes(frame)].reverse().map(([name, size]) => {
      const place = rest % size;
      rest = (rest - place) / size;
      return `${name}=${place}`;
    }).reverse().join(" ");
  }

  // The newest array of a name, up to a step, on the same mesh.
  function found(name, upTo, device) {
    for (let k = upTo; k >= 0; k--) {
      if (data.frames[k].mesh !== data.frames[step].mesh) continue;
      const array = data.frames[k].arrays.find(one => one.name === name && (device === undefined || one.blocks[device] !== null));
      if (array) return array;
    }
  }
  function nameOf(frame) {
    const known = new Set(data.frames.slice(0, step + 1).filter(one => one.mesh === frame.mesh).flatMap(one => one.arrays.map(array => array.name)));
    const chosen = [...known].filter(name => name && name !== "return");
    if (!chosen.includes(pinned)) pinned = "";
    const focused = names.contains(shadow.activeElement);
    names.replaceChildren("show", ...["", ...chosen].map(name => make("button", {
      type: "button", text: name || "this line", "aria-pressed": String(pinned === name), onclick: () => {pinned = name; draw();}})));
    if (focused) names.querySelector("[aria-pressed=true]").focus({preventScroll: true});
    return chosen;
  }

  function tiles(array, device, old) {
    const block = data.pool[array.blocks[device]];
    const stripe = (row, column) => {
      if (!array.stripes) return array.colours[device];
      const [along, sources, length] = array.stripes;
      const place = along === "rows" ? row : column;
      return sources[device][Math.min(sources[device].length - 1, Math.floor(place * sources[device].length / length))];
    };
    const same = old && data.pool[old.blocks[device]];
    const table = make("table", {}, ...block.rows.map((row, r) => make("tr", {}, ...row.map((entry, c) => {
      const changed = same && same.type === block.type && (same.rows[r] || [])[c] !== entry;
      const cell = make("td", {text: entry, class: changed ? "changed" : undefined});
      cell.style.setProperty("--tile", dress.colours[stripe(r, c)]);
      cell.style.width = `${100 / row.length}%`;
      return cell;
    }), ...(block.wide ? [make("td", {class: "more", text: "…"})] : []))));
    if (block.high) table.append(make("tr", {}, make("td", {class: "more", text: "⋮"})));
    const parts = [make("div", {class: "label"}, make("b", {text: array.name}), make("span", {text: block.type})), make("div", {class: "scroll"}, table)];
    if (block.range) parts.push(make("div", {class: "range", text: block.range}));
    return make("div", {class: "held"}, ...parts);
  }
  function card(frame, device, chosen) {
    const wait = waits[step][device], here = frame.here.includes(device) && !wait;
    const node = make("div", {class: `device${here ? " here" : " away"}${wait ? " stuck" : ""}`, tabindex: "0", role: "group",
      "aria-label": `device ${device}, ${placeOf(frame, device)}`,
      onclick: () => {alone = alone === device ? -1 : device; draw();}},
      make("div", {class: "head"}, make("b", {text: `device ${device}`}), make("span", {text: placeOf(frame, device)})));
    if (wait) node.append(make("div", {class: "wait", text: `waits in ${wait.name}${wait.line ? `, line ${wait.line},` : ""} for ${listed("device", wait.missing)}`}));
    else if (frame.waits.some(one => one.missing.includes(device)) || step === last && Object.values(waits[step]).some(one => one.missing.includes(device)))
      node.append(make("div", {class: "wait", text: "never comes there"}));
    const arrays = alone === device ? chosen.map(name => found(name, step, device)) : pinned ? [found(pinned, step, device)] : frame.arrays;
    for (const array of arrays) {
      if (!array) continue;
      if (array.blocks[device] === null || array.blocks[device] === undefined) node.append(make("div", {class: "held", text: wait ? "" : "is elsewhere"}));
      else node.append(tiles(array, device, array.name && !pinned && alone < 0 ? found(array.name, step - 1, device) : undefined));
    }
    return node;
  }

  // What is sent flies from device to device, and what comes of it appears.
  function fly(frame) {
    const sent = frame.transfer;
    if (!sent || alone >= 0 || pinned) return;
    const cards = [...devices.querySelectorAll(".device")];
    const pairs = sent.moves.length ? sent.moves : sent.groups.flatMap(group => group.flatMap(a => group.map(b => [a, b])));
    for (const [from, to] of pairs) {
      const target = cards[to].querySelector(".held"), shape = cards[from].querySelector(".held");
      if (from === to || !target || !shape) continue;
      const ghost = tiles(sent.operand, from);
      ghost.classList.add("ghost");
      const start = shape.getBoundingClientRect(), goal = target.getBoundingClientRect(), box = devices.getBoundingClientRect();
      ghost.style.cssText = `left:${start.left - box.left}px;top:${start.top - box.top}px;width:${start.width}px`;
      devices.append(ghost);
      ghost.animate([{transform: "none", opacity: .95}, {transform: `translate(${goal.left - start.left}px, ${goal.top - start.top}px)`, opacity: .7}],
        {duration: 800, easing: "ease-in-out"}).onfinish = () => ghost.remove();
    }
    for (const card of cards) for (const held of card.querySelectorAll(".held"))
      held.animate([{opacity: 0}, {opacity: 0, offset: .7}, {opacity: 1}], {duration: 1000});
  }

  function wires(frame, cards) {
    const line = (d, kind) => {
      const path = document.createElementNS(SVG, "path");
      path.setAttribute("d", d);
      path.setAttribute("class", kind);
      return path;
    };
    const layer = kind => {
      const svg = document.createElementNS(SVG, "svg");
      svg.setAttribute("class", `wires ${kind}`);
      svg.setAttribute("aria-hidden", "true");
      return svg;
    };
    const under = layer("under"), over = layer("over");
    if (!frame.transfer || alone >= 0) return [under, over];
    const box = devices.getBoundingClientRect();
    const at = cards.map(node => {
      const place = node.getBoundingClientRect();
      return {x: place.left - box.left + place.width / 2, y: place.top - box.top + place.height / 2, w: place.width / 2, h: place.height / 2};
    });
    if (!frame.transfer.moves.length) {
      frame.transfer.groups.forEach((group, number) => group.slice(1).forEach((device, k) => {
        const d = between(at[group[k]], at[device]) ? arc(at[group[k]], at[device], number % 2 ? -1 : 1)
          : `M${at[group[k]].x} ${at[group[k]].y} L${at[device].x} ${at[device].y}`;
        under.append(line(d, "bus"), line(d, "flow"));
      }));
      return [under, over];
    }
    const defs = document.createElementNS(SVG, "defs"), marker = document.createElementNS(SVG, "marker");
    Object.entries({id: "tip", viewBox: "0 0 8 8", refX: 6, refY: 4, markerWidth: 4.5, markerHeight: 4.5, orient: "auto"})
      .forEach(([name, value]) => marker.setAttribute(name, value));
    marker.append(line("M0 0 8 4 0 8z", ""));
    defs.append(marker);
    over.append(defs);
    for (const [from, to] of frame.transfer.moves.filter(([a, b]) => a !== b)) {
      const path = line(arc(at[from], at[to]), "flow");
      path.setAttribute("marker-end", "url(#tip)");
      over.append(path);
    }
    return [under, over];
  }
  const isDown = (a, b) => Math.abs(b.y - a.y) > Math.abs(b.x - a.x);
  // Whether other devices lie on the straight way.
  function between(a, b) {
    const down = isDown(a, b);
    return (down ? Math.abs(b.x - a.x) < 5 : Math.abs(b.y - a.y) < 5)
      && (down ? Math.abs(b.y - a.y) > a.h + b.h + 40 : Math.abs(b.x - a.x) > a.w + b.w + 40);
  }
  // From edge to edge; past other devices, in a bow along one side of them.
  function arc(a, b, side = 1) {
    const down = isDown(a, b), ahead = down ? Math.sign(b.y - a.y) : Math.sign(b.x - a.x);
    if (!between(a, b)) {
      const [x, y, u, v] = down ? [a.x - ahead * 9, a.y + ahead * (a.h - 5), b.x - ahead * 9, b.y - ahead * (b.h - 4)]
        : [a.x + ahead * (a.w - 5), a.y - ahead * 9, b.x - ahead * (b.w - 4), b.y - ahead * 9];
      return `M${x} ${y} L${u} ${v}`;
    }
    const [w, u, h, v] = [a.w, b.w, a.h, b.h].map(half => side * half), bow = side * 16, edge = side * 8;
    return down ? `M${a.x + w - edge} ${a.y} C${a.x + w + bow} ${a.y} ${b.x + u + bow} ${b.y} ${b.x + u - edge / 2} ${b.y}`
      : `M${a.x} ${a.y + h - edge} C${a.x} ${a.y + h + bow} ${b.x} ${b.y + v + bow} ${b.x} ${b.y + v - edge / 2}`;
  }

  function mark(frame) {
    for (const [key, {row, code, cost, text}] of Object.entries(rows)) {
      row.className = "row";
      row.removeAttribute("aria-current");
      if (code.children.length) code.textContent = text;
      const here = Object.values(waits[step]).filter(wait => String(wait.at) === key).map(wait => wait.device);
      cost.classList.toggle("wait", here.length > 0);
      cost.textContent = here.length ? `${listed("device", here)} wait${here.length > 1 ? "" : "s"}` : key in costs[step] ? bytes(costs[step][key]) : "";
    }
    frame.stack.slice(1).forEach(place => rows[place] && rows[place].row.classList.add("caller"));
    const now = frame.stack[0] && rows[frame.stack[0]];
    if (!now) return;
    now.row.className = "row now";
    now.row.setAttribute("aria-current", "step");
    const [from, to] = frame.columns.map(column => Math.max(0, column - now.lead));
    if (to > from) now.code.replaceChildren(now.text.slice(0, from), make("mark", {text: now.text.slice(from, to)}), now.text.slice(to));
    const top = now.row.offsetTop, seen = source.clientHeight;
    if (top < source.scrollTop + 20 || top > source.scrollTop + seen - 50) source.scrollTop = top - seen / 3;
  }

  function draw() {
    const frame = data.frames[step], count = devicesOf(frame);
    frameOf.classList.toggle("back", frame.backward);
    slider.value = step;
    slider.setAttribute("aria-valuetext", `step ${step + 1} of ${last + 1}`);
    where.textContent = `${step + 1} of ${last + 1}`;
    [...marks.children].forEach((one, k) => one.classList.toggle("past", k <= step));
    [[first, step > 0], [before, step > 0], [after, step < last], [end, step < last], [jump, next(step, 1, sends) >= 0],
      [turn, next(step, 1, newTurn) >= 0], [past, next(step, 1, noDeeper(step)) >= 0]].forEach(([one, possible]) => one.disabled = !possible);
    turn.hidden = !data.frames.some(turnOf);
    past.hidden = new Set(data.frames.map(deep)).size < 2;
    jump.hidden = !data.frames.some(sends);
    ended.hidden = !data.ended || step < last;
    if (alone >= count) alone = -1;
    who.replaceChildren(make("option", {value: -1, text: "all devices"}), ...Array.from({length: count}, (_, k) => make("option", {value: k, text: `device ${k}`})));
    who.value = alone;
    mark(frame);
    tell(frame);
    const chosen = nameOf(frame), shape = sizes(frame).map(([, size]) => size);
    const columns = shape.length < 2 ? Math.min(count, count > 4 ? 4 : count) : count / shape[0];
    const width = frameOf.clientWidth;
    frameOf.classList.toggle("narrow", width < 560);
    frameOf.classList.toggle("stacked", width < 700 || columns > 2 && width < 1150);
    const fitting = width < 560 ? Math.min(columns, 2) : columns > 4 && width < 1000 ? 4 : columns;
    devices.style.setProperty("--columns", alone >= 0 ? 1 : fitting);
    const focused = devices.contains(shadow.activeElement) && shadow.activeElement.getAttribute("aria-label");
    const cards = Array.from({length: count}, (_, k) => k).filter(k => alone < 0 || k === alone).map(k => card(frame, k, chosen));
    devices.replaceChildren(...cards);
    const [under, over] = wires(frame, cards);
    devices.prepend(under);
    devices.append(over);
    if (focused) (cards.find(node => node.getAttribute("aria-label") === focused) || frameOf).focus({preventScroll: true});
  }

  // Dark where what is around is dark, or where nothing is said and the reader prefers it.
  function theme() {
    let dark = matchMedia("(prefers-color-scheme: dark)").matches;
    for (let node = root; node; node = node.parentElement) {
      const [r, g, b, a = 1] = (getComputedStyle(node).backgroundColor.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number);
      if (a > .5) { dark = .3 * r + .6 * g + .1 * b < 128; break; }
    }
    frameOf.classList.toggle("dark", dark);
  }
  const watched = new MutationObserver(theme);
  [document.documentElement, document.body].forEach(node => node && watched.observe(node, {attributes: true}));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", theme);

  shadow.append(make("style", {text: dress.style}), frameOf);
  theme();
  draw();
  let wide = frameOf.clientWidth;
  new ResizeObserver(() => { if (frameOf.clientWidth !== wide) { wide = frameOf.clientWidth; theme(); draw(); } }).observe(frameOf);
}
