(() => {
  const data = JSON.parse(document.getElementById("run-data").textContent);
  const { strings, states, rewrites, words } = data;
  const BATCH = 50, GROUP = 4, MOST_FOUND = 30;
  const byId = (id) => document.getElementById(id);
  const make = (name, attributes = {}, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key === "class") made.className = value;
      else made.setAttribute(key, value);
    }
    made.append(...children);
    return made;
  };
  const action = (text, run) => {
    const button = make("button", { type: "button" }, text);
    button.addEventListener("click", run);
    return button;
  };
  const counted = (count, what) => `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;

  /* --- nodes and what rewrites did to them --- */
  const own = (items) => items.filter((item) => item[0] === 1 || item[0] === 2).map((item) => states[item[1]]);
  const nodes = new Map();
  const touch = (state, place) => {
    const node = nodes.get(state[0]) || { id: state[0], rewrites: [], names: new Set() };
    node.op = strings[state[1]];
    node.name = strings[state[2]];
    node.names.add(`${node.op} ${node.name}`);
    if (place !== undefined && node.rewrites[node.rewrites.length - 1] !== place) node.rewrites.push(place);
    nodes.set(state[0], node);
  };
  rewrites.forEach((row, place) => {
    for (const items of [row[6], row[7]]) for (const state of own(items)) touch(state, place);
  });
  for (const state of states) if (!nodes.has(state[0])) touch(state);
  for (const [id, op, name] of data.nodes) nodes.set(id, { id, op: strings[op], name: strings[name], rewrites: [], names: new Set([`${strings[op]} ${strings[name]}`]) });
  const texts = rewrites.map((row) =>
    [strings[row[1]], strings[row[4]], ...[row[6], row[7]].flatMap((items) => own(items).flatMap((s) => [strings[s[1]], strings[s[2]]]))]
      .join("\n").toLowerCase());

  const describe = (state) => `${strings[state[1]]} “${strings[state[2]]}”`;
  const line = (state, sign) => {
    const names = (values) => values.map((value) => (value < 0 ? '""' : strings[value])).join(", ");
    const text = `${sign} [${strings[state[2]]}] ${names(state[4])} = ${strings[state[1]]}(${names(state[3])})`;
    if (sign === "~") return make("span", {}, `${text}, attributes changed\n`);
    return make("span", { class: sign === "-" ? "minus" : "plus" }, `${text}\n`);
  };

  /* --- one rewrite --- */
  const side = (title, items, kind, row) => {
    const typeOf = (value) => strings[row[9][value] ?? data.types[value]] || "";
    const shown = own(items);
    const label = `${title}: ${shown.map(describe).join(", ") || "no node"}`;
    const view = make("div", { class: "view", tabindex: "0", role: "region", "aria-label": `Diagram ${title.toLowerCase()} ${words.unit} ${row[0]}` });
    if (items.length) view.append(drawDiagram(items, kind, label, data, typeOf, showNode));
    else view.append(make("p", {}, "no node"));
    const chips = make("ul", { class: "chips", "aria-label": `Nodes ${title.toLowerCase()}` });
    for (const state of shown) chips.append(make("li", {}, action(`${strings[state[1]]} ${strings[state[2]]}`, () => showNode(state[0]))));
    return make("div", {}, make("h3", {}, title), view, chips);
  };
  const detailOf = (row) => {
    const detail = make("div", { class: "detail" });
    const listed = (title, values) => values.length &&
      detail.append(make("p", {}, `${title}: ${values.map((value) => strings[value]).join(", ")}`));
    if (data.reasons[strings[row[1]]]) detail.append(make("p", { class: "reason" }, data.reasons[strings[row[1]]]));
    if (data.proofs[row[0]]) detail.append(make("p", {}, `Certificate: ${data.proofs[row[0]]}.`));
    if (row[5]) detail.append(make("p", { class: "bad" }, "This rewrite was undone, because its pass or a pipeline around it failed."));
    if (strings[row[3]]) detail.append(make("p", {}, `In graph “${strings[row[3]]}”.`));
    detail.append(make("div", { class: "sides" }, side("Before", row[6], "old", row), side("After", row[7], "new", row)));
    if (row[8]) detail.append(make("p", { class: "note" }, `Nodes of this ${words.unit} that are not drawn: ${row[8].toLocaleString("en")}.`));
    const pre = make("pre", { class: "lines", tabindex: "0", role: "region", "aria-label": `Changed nodes of ${words.unit} ${row[0]}` });
    const [olds, news] = [own(row[6]), own(row[7])];
    for (const state of olds) pre.append(line(state, news.includes(state) ? "~" : "-"));
    for (const state of news) if (!olds.includes(state)) pre.append(line(state, "+"));
    detail.append(pre);
    listed("Initializers added", row[10]);
    listed("Initializers removed", row[11]);
    return detail;
  };

  /* --- the list; many rewrites of one pass in a row are a group --- */
  const list = byId("rewrites-list"), more = byId("rewrites-more"), note = byId("rewrites-note");
  let chosen = rewrites.map((_, place) => place), blocks = [], drawUpTo = () => {};
  const rowItem = (id, name, count, law, contents) => {
    const button = make("button", { type: "button", class: "row", "aria-expanded": "false" },
      make("span", { class: "name" }, name), make("span", { class: "count" }, count), make("span", { class: "law" }, law));
    const item = make("li", { id }, button);
    const isOpen = () => button.getAttribute("aria-expanded") === "true";
    button.addEventListener("click", () => {
      if (isOpen()) item.lastElementChild.remove();
      else item.append(contents());
      button.setAttribute("aria-expanded", String(!isOpen()));
    });
    item.expand = () => { if (!isOpen()) button.click(); };
    return item;
  };
  const entry = (place) => {
    const row = rewrites[place];
    const where = `${strings[row[4]] ? "at " + cut(strings[row[4]], 60) : ""}${row[5] ? " (undone)" : ""}`;
    return rowItem(`rewrite-${place}`, `#${row[0]} ${strings[row[1]]}`, where, strings[row[2]], () => detailOf(row));
  };
  /* Append items to a list a batch at a time; return a function that appends those below an index. */
  const inBatches = (target, button, values, itemOf) => {
    let drawn = 0;
    const upTo = (end) => {
      for (; drawn < Math.min(values.length, end); drawn += 1) target.append(itemOf(values[drawn]));
      button.hidden = drawn >= values.length;
      button.textContent = `Show more (${(values.length - drawn).toLocaleString("en")} left)`;
    };
    button.onclick = () => upTo(drawn + BATCH);
    upTo(BATCH);
    return upTo;
  };
  const groupOf = (block) => {
    const rows = block.map((place) => rewrites[place]), first = rows[0], pass = strings[first[1]];
    const law = rows.every((row) => row[2] === first[2]) ? strings[first[2]] : "";
    const item = rowItem(`rewrites-from-${block[0]}`, `#${first[0]} to #${rows[rows.length - 1][0]} ${pass}`, counted(block.length, words.unit), law, () => {
      const inner = make("ol", { class: "plain", "aria-label": `Each ${words.unit} of ${pass}` }), button = make("button", { type: "button" });
      item.drawUpTo = inBatches(inner, button, block, entry);
      return make("div", { class: "detail" }, inner, button);
    });
    return item;
  };
  const blocksOf = (places) => {
    const found = [];
    for (const place of places) {
      const last = found[found.length - 1];
      if (last && rewrites[last[0]][1] === rewrites[place][1]) last.push(place);
      else found.push([place]);
    }
    return found.flatMap((block) => (block.length < GROUP ? block.map((place) => [place]) : [block]));
  };
  const redraw = () => {
    if (!list) return;
    list.replaceChildren();
    blocks = blocksOf(chosen);
    drawUpTo = inBatches(list, more, blocks, (block) => (block.length > 1 ? groupOf(block) : entry(block[0])));
    if (blocks.length === 1 && blocks[0].length > 1) list.firstElementChild.expand();
  };
  const showRewrite = (place) => {
    if (!chosen.includes(place)) {
      byId("search").value = "";
      search();
    }
    const at = blocks.findIndex((block) => block.includes(place)), block = blocks[at];
    drawUpTo(at + 1);
    if (block.length > 1) {
      const group = list.children[at];
      group.expand();
      group.drawUpTo(block.indexOf(place) + 1);
    }
    const item = byId(`rewrite-${place}`);
    item.expand();
    item.scrollIntoView({ block: "start" });
    item.firstElementChild.focus();
  };

  /* --- one node --- */
  const panel = byId("node");
  let back = null;
  function showNode(id) {
    const node = nodes.get(id);
    if (!node || !panel) return;
    if (panel.hidden) back = document.activeElement;
    byId("node-title").textContent = `${node.op} “${node.name}”`;
    const body = byId("node-body");
    body.replaceChildren();
    const steps = make("ol");
    let isOfFile = true, isThere = true;
    for (const place of node.rewrites) {
      const row = rewrites[place], before = own(row[6]), after = own(row[7]);
      const was = before.some((state) => state[0] === id), is = after.some((state) => state[0] === id);
      if (place === node.rewrites[0]) isOfFile = was;
      if (!row[5]) isThere = is;
      const did = `${was && is ? "changed" : was ? "removed" : "made"} ${words.by} `;
      const step = make("li", {}, did, action(`#${row[0]} ${strings[row[1]]}`, () => showRewrite(place)), row[5] ? " (undone)" : "");
      const linked = was && !is ? after : !was ? before : [];
      if (linked.length) {
        step.append(make("div", {}, was ? "Replaced by:" : "Made from:"));
        const chips = make("ul", { class: "chips" });
        for (const other of linked) chips.append(make("li", {}, action(`${strings[other[1]]} ${strings[other[2]]}`, () => showNode(other[0]))));
        step.append(chips);
      }
      steps.append(step);
    }
    const from = node.rewrites.length === 0 ? words.untouched
      : `${isOfFile ? words.old : words.new} ${isThere ? words.kept : words.gone}`;
    body.append(make("p", {}, from), steps);
    panel.hidden = false;
    panel.scrollIntoView({ block: "nearest" });
    panel.focus();
  }
  if (panel) {
    byId("node-close").addEventListener("click", () => {
      panel.hidden = true;
      if (back) back.focus();
    });
    panel.addEventListener("keydown", (event) => { if (event.key === "Escape") byId("node-close").click(); });
  }

  /* --- search --- */
  const field = byId("search");
  const found = [...document.querySelectorAll("[data-search]")].map((element) => [element, element.dataset.search.toLowerCase()]);
  const groups = [...document.querySelectorAll("details[data-group]")];
  function search() {
    const typed = field.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (text) => typed.every((word) => text.includes(word));
    chosen = [];
    texts.forEach((text, place) => { if (fits(text)) chosen.push(place); });
    redraw();
    let shown = 0;
    for (const [element, text] of found) {
      element.hidden = !fits(text);
      shown += element.hidden ? 0 : 1;
    }
    for (const group of groups) {
      const any = [...group.querySelectorAll("[data-search]")].some((element) => !element.hidden);
      group.hidden = !any;
      group.open = any && typed.length > 0;
    }
    const hits = typed.length ? [...nodes.values()].filter((node) => fits([...node.names].join(" ").toLowerCase())) : [];
    const names = byId("nodes-list");
    byId("nodes-found").hidden = hits.length === 0;
    names.replaceChildren();
    for (const node of hits.slice(0, MOST_FOUND)) {
      names.append(make("li", {}, action(`${node.op} ${node.name}`, () => showNode(node.id)),
        make("span", { class: "count" }, counted(node.rewrites.length, words.unit))));
    }
    if (hits.length > MOST_FOUND) names.append(make("li", {}, `and ${(hits.length - MOST_FOUND).toLocaleString("en")} more`));
    const listed = found.length ? `, ${counted(shown, "pass").replace("passs", "passes")} in the lists` : "";
    byId("found").textContent = typed.length
      ? `${counted(chosen.length, words.unit)}, ${counted(hits.length, "node")}${listed}` : "";
  }
  let waiting = 0;
  field.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(search, 120); });
  byId("search-form").addEventListener("submit", (event) => { event.preventDefault(); clearTimeout(waiting); search(); });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !/^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName)) {
      event.preventDefault();
      field.focus();
    }
  });
  for (const button of document.querySelectorAll("[data-pass]")) {
    button.addEventListener("click", () => {
      field.value = button.dataset.pass;
      search();
      byId("rewrites").scrollIntoView();
    });
  }
  document.querySelector(".search").hidden = false;
  if (note && data.total > rewrites.length) {
    note.textContent = `The first ${rewrites.length.toLocaleString("en")} of ${data.total.toLocaleString("en")} ${words.unit}s are shown: the page has a limit.`;
    note.hidden = false;
  }
  redraw();
})();
