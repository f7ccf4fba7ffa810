/* Draws the nodes before and after a pass, by the drawing code of the pages of runs. */
const SMALLEST = 0.6, COLUMN = 380;  /* How far a diagram may shrink; what fits beside another. */

document.addEventListener("DOMContentLoaded", () => {
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
        const width = Number(svg.getAttribute("width"));
        svg.style.minWidth = `${width * SMALLEST}px`;
        if (width > COLUMN) place.classList.add("wide");
        view.append(svg);
      } else view.append("no node");
      figure.append(caption, view);
      place.append(figure);
    }
  }
});
