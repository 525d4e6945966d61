"use strict";
const form = document.getElementById("filter");
const rows = document.querySelectorAll("#rules tbody tr");
const shown = document.getElementById("shown");
const apply = () => {
  const word = form.elements.word.value.toLowerCase();
  const verdict = form.elements.verdict.value;
  let count = 0;
  for (const row of rows) {
    const fits = (!verdict || row.cells[0].textContent === verdict) &&
      row.textContent.toLowerCase().includes(word);
    row.hidden = !fits;
    count += fits ? 1 : 0;
  }
  shown.textContent = count + " of " + rows.length;
};
form.addEventListener("input", apply);
form.addEventListener("submit", (event) => event.preventDefault());
form.hidden = false;
apply();
