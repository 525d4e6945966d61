//! Bad `service.yaml` files: every kind of mistake is refused at its place, with what to do.

use conformant_judge::load::predicates;
use conformant_rulebook::{Problems, Rulebook};

const SERVICE: &str = "\
title: Orders
document: { id: ORDERS, title: Orders API }
base: { path: /orders, probe: { call: fetch-order, with: { Sid: OR1 } } }
settings:
  size: { description: A size., type: choice, values: [s, m], default: s }
  shop: { description: A shop., provisioned: { hook: open_shop, result: shop } }
hooks:
  open_shop: { result: [shop] }
  ship_order: { takes: [sid], effects: [{ does: changes, kind: orders/order, key: sid }] }
";
const OPENAPI: &str = "\
openapi: 3.1.0
info: { title: Orders, version: v1 }
paths:
  /v1/Orders/{Sid}:
    get:
      operationId: fetch-order
      summary: Fetches an order.
      x-source: { section: Endpoints, lines: [3] }
      parameters:
        - name: Sid
          in: path
          required: true
          description: The order.
          schema: { type: string }
          x-source: { section: Endpoints, lines: [3] }
          x-echo: /sid
      responses:
        2XX:
          description: The order.
          content: { application/json: { schema: { $ref: schemas/order.yaml } } }
";
const ORDER: &str = "\
title: Order
description: An order.
x-source: { section: Order, lines: [5] }
type: object
required: [sid]
properties:
  sid:
    type: string
    description: Names it.
    x-source: { section: Order, lines: [6] }
";
const SCENARIOS: &str = "\
operations:
  fetch-order:
    with: { Sid: OR1 }
";

fn load(service: Option<&str>, more: &[(&str, &str)]) -> Result<Rulebook, Problems> {
    let own = [
        ("orders/openapi.yaml", OPENAPI),
        ("orders/schemas/order.yaml", ORDER),
        ("orders/scenarios/orders.yaml", SCENARIOS),
    ];
    let service = service.map(|text| ("orders/service.yaml", text));
    let files = own.iter().copied().chain(service);
    let files = files.chain(more.iter().copied());
    let files = files.map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec()));
    Rulebook::from_files(predicates(), files)
}

/// Replaces one text in the file; its problem is on that line and holds the words.
#[track_caller]
fn refuses(from: &str, to: &str, line: usize, words: &[&str]) {
    assert!(SERVICE.contains(from), "{from} is not in the file");
    let text = SERVICE.replacen(from, to, 1);
    let problems = load(Some(&text), &[]).expect_err("a bad file");
    let found = problems.iter().any(|problem| {
        let printed = format!("{} {:?}", problem.message, problem.help);
        problem.file == "orders/service.yaml"
            && problem.line == line
            && words.iter().all(|word| printed.contains(word))
    });
    assert!(found, "{problems}");
}

#[test]
fn a_fourth_service_is_loaded_with_its_settings_and_hooks() {
    let rulebook = load(Some(SERVICE), &[]).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(rulebook.index.targets(), ["orders"]);
    assert!(rulebook.index.hook("ship_order").is_some());
    assert!(rulebook.index.hook("advance_clock").is_some());
    let document = rulebook
        .rules
        .get("orders/order/sid")
        .map(|rule| rule.source.document);
    assert_eq!(document.map(|id| id.to_string()).as_deref(), Some("ORDERS"));
}

#[test]
fn unknown_names_of_a_service_file_are_refused_where_they_stand() {
    refuses(
        "title: Orders",
        "titel: Orders",
        1,
        &["unknown key `titel`"],
    );
    refuses(
        "call: fetch-order",
        "call: fetch-ordr",
        3,
        &["operation", "fetch-order"],
    );
    refuses("with: { Sid", "with: { Sdi", 3, &["parameter", "Sid"]);
    refuses(
        "hook: open_shop",
        "hook: opn_shop",
        6,
        &["hook", "open_shop"],
    );
    refuses(
        "kind: orders/order",
        "kind: orders/ordr",
        9,
        &["resource type", "orders/order"],
    );
    refuses("key: sid", "key: sdi", 9, &["argument or result", "sid"]);
    refuses(
        "does: changes",
        "does: change",
        9,
        &["unknown word `change`"],
    );
}

#[test]
fn values_of_a_service_file_that_do_not_fit_are_refused() {
    refuses("id: ORDERS", "id: \"O R\"", 2, &["invalid document id"]);
    refuses("path: /orders", "path: orders", 3, &["invalid base path"]);
    refuses("default: s", "default: x", 5, &["is not one of its values"]);
    refuses("type: choice, ", "", 5, &["`values` of `size`"]);
    refuses("  open_shop:", "  Open-shop:", 8, &["invalid hook name"]);
    refuses("  ship_order:", "  reset:", 9, &["is built in"]);
}

#[test]
fn a_setting_whose_keys_do_not_fit_its_type_is_refused() {
    refuses(
        "default: s }",
        "default: s, many: true }",
        5,
        &["`many` of `size`"],
    );
    let stands_for = "default: s, stands-for: { l: s } }";
    refuses("default: s }", stands_for, 5, &["`l` in `stands-for`"]);
    let group =
        "type: group, members: { name: { description: Its name., type: choice, values: [a] } },";
    let (from, to) = ("type: choice, values: [s, m], default: s", group);
    refuses(
        from,
        to.trim_end_matches(','),
        5,
        &["the member `name`", "not one text"],
    );
}

#[test]
fn names_in_a_setting_that_do_not_resolve_are_refused() {
    let shop = "{ hook: open_shop, result: shop }";
    let with = |to: &str, words: &[&str]| refuses(shop, to, 6, words);
    with(
        "{ hook: open_shop, result: shp }",
        &["result of the hook", "shop"],
    );
    let then = "{ hook: open_shop, result: shop, then: ship_order }";
    with(then, &["argument of the hook `ship_order`", "sid"]);
    let found = "{ hook: open_shop, result: shop, found: { in: fetch-order, key: sid } }";
    with(found, &["invalid JSON Pointer `sid`"]);
    let exclusive = |scope: &str, parameter: &str, freed: &str, holder: &str| {
        format!(
            "{shop}, many: true, exclusive: {{ within: size, taken-by: fetch-order, scope: {scope}, parameter: {parameter}, \
             held: {{ in: fetch-order, at: /a, while: {{ at: /b, is: c }}, key: /sid }}, shown-by: fetch-order, \
             free: {{ at: /b, is: d }}, freed-by: {{ hook: ship_order, scope: {freed}, holder: {holder} }} }}"
        )
    };
    let sound = SERVICE.replacen(shop, &exclusive("Sid", "Sid", "sid", "sid"), 1);
    load(Some(&sound), &[]).unwrap_or_else(|problems| panic!("{problems}"));
    for (text, words) in [
        (exclusive("Sdi", "Sid", "sid", "sid"), ["parameter", "Sdi"]),
        (exclusive("Sid", "Sdi", "sid", "sid"), ["parameter", "Sdi"]),
        (
            exclusive("Sid", "Sid", "shop", "sid"),
            ["argument of the hook", "shop"],
        ),
        (
            exclusive("Sid", "Sid", "sid", "shop"),
            ["argument of the hook", "shop"],
        ),
    ] {
        with(&text, &words);
    }
}

#[test]
fn what_only_one_service_may_have_is_refused_in_the_second() {
    let second = "\
title: Parcels
document: { id: ORDERS, title: Another title }
base: { path: /orders, probe: { call: x } }
hooks: { ship_order: {} }
";
    let problems = load(Some(SERVICE), &[("parcels/service.yaml", second)]).expect_err("clashes");
    let printed = problems.to_string();
    for words in [
        "same base path",
        "another title",
        "the service orders has a hook `ship_order` as well",
    ] {
        assert!(printed.contains(words), "{words}: {printed}");
    }
}

#[test]
fn a_folder_without_a_service_file_is_no_service() {
    let problems = load(None, &[]).expect_err("no service.yaml");
    assert_eq!(problems.len(), 1, "{problems}");
    assert!(
        problems.to_string().contains("it has no service.yaml"),
        "{problems}"
    );
}
