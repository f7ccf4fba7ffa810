/* Draws the nodes before and after a pass, by the drawing code of the pages of runs. */
const COLUMN = 380;  /* The width of a diagram that fits beside another. */

/* What the theme leaves out for screen readers and the keyboard. */
function completeRoles() {
  const set = (selector, attributes) => {
    for (const element of document.querySelectorAll(selector)) {
      for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    }
  };
  set(".caption[role=heading]", { "aria-level": "2" });
  set("aside.sidebar-drawer", { "aria-label": "Pages" });
  set("aside.toc-drawer", { "aria-label": "On this page" });
  set("pre", { tabindex: "0" });
  for (const old of document.querySelectorAll(".sig dd, .sig dl")) {  /* Parameters are no definitions. */
    const line = document.createElement("div");
    line.className = "parameter";
    line.append(...old.childNodes);
    old.replaceWith(line);
  }
}

document.addEventListener("DOMContentLoaded", () => {
  completeRoles();
  for (const title of document.querySelectorAll("article h1")) {
    const text = title.firstChild;
    if (text && text.nodeType === Node.TEXT_NODE) {  /* Long names break after an underscore. */
      text.replaceWith(...text.data.split(/(?<=_)/).flatMap((part) => [part, document.createElement("wbr")]));
    }
  }
  for (const place of document.querySelectorAll(".tiered-picture")) {
    const data = JSON.parse(place.querySelector("script").textContent);
    const [row] = data.rewrites;
    const typeOf = (value) => data.strings[row[9][value] ?? data.types[value]] || "";
    const nodes = (items) => items.filter((item) => item[0] < 3)
      .map((item) => `${data.strings[data.states[item[1]][1]]} ${data.strings[data.states[item[1]][2]]}`);
    for (const [title, side, items] of [["Before", "old", row[6]], ["After", "new", row[7]]]) {
      const figure = document.createElement("figure");
      const caption = document.createElement("figcaption");
      caption.textContent = title;
      const view = document.createElement("div");
      view.className = "view";
      view.tabIndex = 0;
      view.setAttribute("role", "region");
      view.setAttribute("aria-label", `Diagram: ${title.toLowerCase()}`);
      const label = `${title}: ${nodes(items).join(", ") || "no node"}`;
      if (items.length) {
        const svg = drawDiagram(items, side, label, data, typeOf, () => {});
        if (Number(svg.getAttribute("width")) > COLUMN) place.classList.add("wide");
        view.append(svg);
      } else view.append("no node");
      figure.append(caption, view);
      place.append(figure);
    }
  }
});
