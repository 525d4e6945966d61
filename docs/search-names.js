// Finds a name in the book in each spelling: page_size, page-size and PageSize are one name.
// mdBook loads it with the page; the search index looks words up as they are written.
(() => {
  "use strict";
  const spellings = (query) => query.split(/\s+/).flatMap((word) => {
    const parts = word.replace(/([a-z0-9])([A-Z])/g, "$1 $2").split(/[\s_-]+/).filter(Boolean);
    return parts.length < 2 ? [word] : [word, parts.join(""), parts.join("_"), ...parts];
  }).join(" ");
  const { elasticlunr } = window;
  if (!elasticlunr) return;
  const { search } = elasticlunr.Index.prototype;
  elasticlunr.Index.prototype.search = function (query, options) {
    return search.call(this, spellings(query), options);
  };
})();
