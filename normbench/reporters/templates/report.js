"use strict";
// The table of results: a click on a head sorts by it, the fields above leave only the rows that match all of them.
(() => {
  const section = document.getElementById("results");
  if (!section) return;
  const table = section.querySelector("table");
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  const heads = Array.from(table.tHead.rows[0].cells);
  const count = section.querySelector(".count");
  const key = (row, column) => row.cells[column].dataset.key;

  const compare = (isNumber) => (a, b) => {
    if (a === undefined || b === undefined) return (a === undefined) - (b === undefined);
    return isNumber ? Number(a) - Number(b) : a.localeCompare(b);
  };

  const sort = (column) => {
    const head = heads[column];
    const down = head.getAttribute("aria-sort") === "ascending";
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const order = compare(head.classList.contains("number"));
    rows.sort((one, other) => {
      const [a, b] = [key(one, column), key(other, column)];
      // What is absent comes last either way.
      return a === undefined || b === undefined || !down ? order(a, b) : order(b, a);
    });
    body.append(...rows);
  };
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => sort(column)));

  const filters = section.querySelector(".filters");
  const words = filters.querySelector("input");
  const facets = Array.from(filters.querySelectorAll("select"));
  // What is read in a row: not what its picture of the samples says in words.
  const read = (row) => Array.from(row.cells, (cell) => (cell.querySelector("svg") ? "" : cell.textContent));
  const text = new Map(rows.map((row) => [row, read(row).join(" ").toLowerCase()]));

  const filter = () => {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const fits =
        facets.every((facet) => !facet.value || key(row, Number(facet.dataset.column)) === facet.value) &&
        wanted.every((word) => text.get(row).includes(word));
      row.hidden = !fits;
      shown += fits;
    }
    count.textContent = `${shown} of ${rows.length} results`;
  };

  for (const facet of facets) {
    const values = new Set(rows.map((row) => key(row, Number(facet.dataset.column))));
    values.delete(undefined);
    for (const value of values) facet.add(new Option(value, value));
    facet.parentElement.hidden = values.size < 2;
    facet.addEventListener("change", filter);
  }
  words.addEventListener("input", filter);
  filters.hidden = false;
  filter();
})();
