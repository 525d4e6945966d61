//! Bad `service.yaml` files: every kind of mistake is refused at its place, with what to do.

use conformant_judge::load::predicates;
use conformant_rulebook::service::ServiceIndex;
use conformant_rulebook::{Problems, Rulebook, parse_configuration};
use serde_json::Value;

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

/// Replaces one text in the file; its problem is on that line and holds the words, which `…` separates.
#[track_caller]
fn refuses(from: &str, to: &str, line: usize, words: &str) {
    assert!(SERVICE.contains(from), "{from} is not in the file");
    let text = SERVICE.replacen(from, to, 1);
    let problems = load(Some(&text), &[]).expect_err("a bad file");
    let found = problems.iter().any(|problem| {
        let printed = format!("{} {:?}", problem.message, problem.help);
        problem.file == "orders/service.yaml"
            && problem.line == line
            && words.split(" … ").all(|word| printed.contains(word))
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
    refuses("title: Orders", "titel: Orders", 1, "unknown key `titel`");
    refuses(
        "call: fetch-order",
        "call: fetch-ordr",
        3,
        "operation … fetch-order",
    );
    refuses("with: { Sid", "with: { Sdi", 3, "parameter … Sid");
    refuses("hook: open_shop", "hook: opn_shop", 6, "hook … open_shop");
    refuses(
        "kind: orders/order",
        "kind: orders/ordr",
        9,
        "resource type … orders/order",
    );
    refuses("key: sid", "key: sdi", 9, "argument or result … sid");
    refuses("does: changes", "does: change", 9, "unknown word `change`");
}

#[test]
fn names_that_a_setting_refers_to_are_refused_where_they_stand() {
    refuses("result: shop }", "result: shpo }", 6, "result … shop");
    let exclusive = |scope: &str, holder: &str| {
        format!(
            "  to: {{ description: To., many: true, exclusive: {{ within: shop, taken-by: fetch-order, scope: {scope}, \
             parameter: Sid, held: {{ in: fetch-order, at: /sid, while: {{ at: /sid, is: a }}, key: /sid }}, \
             shown-by: fetch-order, free: {{ at: /sid, is: b }}, \
             freed-by: {{ hook: ship_order, scope: sid, holder: {holder} }} }} }}\n  shop:"
        )
    };
    refuses("  shop:", &exclusive("Sdi", "sid"), 6, "parameter … Sid");
    refuses("  shop:", &exclusive("Sid", "sdi"), 6, "argument … sid");
    for place in [
        "at: /sid, while",
        "at: /sid, is: a",
        "key: /sid",
        "at: /sid, is: b",
    ] {
        let bad = exclusive("Sid", "sid").replace(place, &place.replace("/sid", "sid"));
        refuses("  shop:", &bad, 6, "invalid JSON Pointer `sid`");
    }
    for (hook, words) in [
        ("ship_order", "the hook `ship_order` does not take `shop`"),
        ("pack", "the hook `pack` also needs `box`"),
    ] {
        let then = format!("hook: open_shop, then: {hook}");
        let more = "hooks:\n  pack: { takes: [shop, box] }\n";
        let text = SERVICE.replacen("hook: open_shop", &then, 1);
        let problems = load(Some(&text.replacen("hooks:\n", more, 1)), &[]).expect_err(hook);
        assert!(problems.to_string().contains(words), "{problems}");
    }
    let sound = SERVICE.replacen("  shop:", &exclusive("Sid", "sid"), 1);
    let loaded = load(Some(&sound), &[]);
    assert!(loaded.is_ok(), "{:?}", loaded.err());
}

#[test]
fn values_of_a_service_file_that_do_not_fit_are_refused() {
    refuses("id: ORDERS", "id: \"O R\"", 2, "invalid document id");
    refuses("path: /orders", "path: orders", 3, "invalid base path");
    refuses("default: s", "default: x", 5, "is not one of its values");
    refuses(
        "default: s",
        "stands-for: { l: s }",
        5,
        "`stands-for` of `size`",
    );
    refuses("type: choice, ", "", 5, "`values` of `size`");
    for (member, words) in [
        (
            "{ description: A., many: true }",
            "the member `a` of `size`",
        ),
        (
            "{ description: A., type: group, members: { b: { description: B. } } }",
            "the member `a` of `size`",
        ),
        ("{ description: A., type: choice }", "`values` of `a`"),
    ] {
        let group = format!("type: group, members: {{ a: {member} }} }}");
        refuses(
            "type: choice, values: [s, m], default: s }",
            &group,
            5,
            words,
        );
    }
    refuses("  open_shop:", "  Open-shop:", 8, "invalid hook name");
    refuses("  ship_order:", "  reset:", 9, "is built in");
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
        "orders already has a hook `ship_order`",
    ] {
        assert!(printed.contains(words), "{words}: {printed}");
    }
}

#[test]
fn settings_are_accepted_only_below_the_target_of_their_service() {
    let parse = |text: &str| {
        let index = ServiceIndex::embedded();
        parse_configuration::<Value>("conformant.yaml", text.as_bytes(), index, &["url"])
    };
    let sound = "targets: { auth: { url: x, format: both }, flow: { flow_sid: FW1 } }";
    let (rest, configured) = parse(sound).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(rest["targets"]["auth"]["url"], "x");
    assert!(
        configured["auth"].contains_key("format") && configured["flow"].contains_key("flow_sid")
    );
    for (targets, words) in [
        (
            "flow: { format: xml }",
            "`format` is a setting of auth (move it to `targets.auth`, or remove it)",
        ),
        (
            "flow: { application: { id: \"1\" } }",
            "`application` is a setting of auth",
        ),
        (
            "auth: { message_service_sid: MG1 }",
            "`message_service_sid` is a setting of chat and flow",
        ),
        ("flow: { flow_sdi: FW1 }", "unknown key `flow_sdi`"),
        (
            "auth: { format: yaml }",
            "unknown word `yaml` (expected json, xml or both)",
        ),
    ] {
        let problems = parse(&format!("targets: {{ {targets} }}")).expect_err(targets);
        assert!(problems.to_string().contains(words), "{problems}");
    }
    // Whether there is such a target is checked with the addresses.
    assert!(parse("targets: { flwo: { format: xml } }").is_ok());
}

#[test]
fn members_of_a_group_are_read_by_their_type() {
    let group = "type: group, members: { a: { description: A., type: choice, values: [s, m] } } }";
    let text = SERVICE.replacen("type: choice, values: [s, m], default: s }", group, 1);
    let rulebook = load(Some(&text), &[]).unwrap_or_else(|problems| panic!("{problems}"));
    let parse = |value: &str| {
        let text = format!("targets: {{ orders: {{ size: {{ a: {value} }} }} }}");
        let keys = ["url"];
        parse_configuration::<Value>("conformant.yaml", text.as_bytes(), &rulebook.index, &keys)
    };
    assert!(parse("m").is_ok() && parse("null").is_ok());
    let problems = parse("l").expect_err("not one of its values");
    assert!(
        problems
            .to_string()
            .contains("unknown word `l` (expected s or m)"),
        "{problems}"
    );
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
